#include "runtime/box.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <initializer_list>

#include "base/text.h"
#include "runtime/cubin_cache.h"

extern char** environ;

namespace tw::runtime {
namespace {

namespace fs = std::filesystem;

// Landlock's interface, as in linux/landlock.h: headers of older systems lack it, or parts of it.
namespace landlock {
constexpr long create_ruleset = 444, add_rule = 445, restrict_self = 446;
constexpr unsigned version_flag = 1;
constexpr int rule_path_beneath = 1;
constexpr std::uint64_t write_file = 1u << 1, remove_dir = 1u << 4, remove_file = 1u << 5, make_char = 1u << 6, make_dir = 1u << 7,
                        make_reg = 1u << 8, make_sock = 1u << 9, make_fifo = 1u << 10, make_block = 1u << 11, make_sym = 1u << 12,
                        refer = 1u << 13, truncate = 1u << 14;
constexpr std::uint64_t scope_abstract_sockets = 1u << 0, scope_signals = 1u << 1;
struct Ruleset {
    std::uint64_t fs, net, scoped;
};
struct __attribute__((packed)) PathBeneath {
    std::uint64_t allowed;
    std::int32_t parent;
};

std::uint64_t writes(int version) {
    std::uint64_t all =
        write_file | remove_dir | remove_file | make_char | make_dir | make_reg | make_sock | make_fifo | make_block | make_sym;
    if (version >= 2) all |= refer;
    if (version >= 3) all |= truncate;
    return all;
}
}  // namespace landlock

#if defined(__x86_64__)
constexpr unsigned kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr unsigned kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr unsigned kArchitecture = 0;
#endif

// Calls by which a process reaches into others, into the kernel or around the filters. None is used by what we run.
constexpr long kRefused[] = {SYS_mount,
                             SYS_umount2,
                             SYS_pivot_root,
                             SYS_chroot,
                             SYS_setns,
                             SYS_unshare,
                             SYS_kexec_load,
                             SYS_init_module,
                             SYS_finit_module,
                             SYS_delete_module,
                             SYS_bpf,
                             SYS_perf_event_open,
                             SYS_keyctl,
                             SYS_add_key,
                             SYS_request_key,
                             SYS_userfaultfd,
                             SYS_open_by_handle_at,
                             SYS_reboot,
                             SYS_swapon,
                             SYS_swapoff,
                             SYS_acct,
                             SYS_quotactl,
                             425 /* io_uring_setup */,
                             429 /* move_mount */,
                             430 /* fsopen */};
constexpr long kTracing[] = {SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev};

std::vector<sock_filter> make_filter(const Box& box) {
    std::vector<sock_filter> f;
    const auto load = [&](std::size_t offset) { f.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<unsigned>(offset))); };
    const auto refuse = [&](int error) { f.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(error))); };
    const auto skip_unless = [&](unsigned value, std::uint8_t steps) { f.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, steps)); };
    // Another architecture's numbers mean other calls.
    load(offsetof(seccomp_data, arch));
    f.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0));
    refuse(EPERM);
    load(offsetof(seccomp_data, nr));
#if defined(__x86_64__)
    f.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000u /* x32 */, 0, 1));
    refuse(EPERM);
#endif
    for (const long call : kRefused) skip_unless(static_cast<unsigned>(call), 1), refuse(EPERM);
    if (!box.profilers)
        for (const long call : kTracing) skip_unless(static_cast<unsigned>(call), 1), refuse(EPERM);
    if (box.network == Network::none) {
        skip_unless(SYS_socket, 1), refuse(EACCES);
    } else if (box.network == Network::local) {
        skip_unless(SYS_socket, 5);
        load(offsetof(seccomp_data, args[0]));
        f.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_UNIX, 2, 0));
        f.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 1, 0));
        refuse(EACCES);
        f.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));  // the number is no longer loaded
    }
    f.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    return f;
}

// Writes below the named folders only. Errors of a single path are none of ours: what is not there cannot be written.
const char* restrict_writes(int version, const std::vector<std::string>& paths) {
    using namespace landlock;
    Ruleset rules{writes(version), 0, version >= 6 ? scope_abstract_sockets | scope_signals : 0};
    const std::size_t size = version >= 6 ? sizeof rules : version >= 4 ? 2 * sizeof(std::uint64_t) : sizeof(std::uint64_t);
    const auto ruleset = static_cast<int>(::syscall(create_ruleset, &rules, size, 0));
    if (ruleset < 0) return "landlock_create_ruleset";
    for (const std::string& path : paths) {
        const int folder = ::open(path.c_str(), O_PATH | O_CLOEXEC);
        if (folder < 0) continue;
        struct stat found {};
        const bool is_folder = ::fstat(folder, &found) == 0 && S_ISDIR(found.st_mode);
        PathBeneath beneath{is_folder ? rules.fs : rules.fs & (write_file | truncate), folder};
        ::syscall(add_rule, ruleset, rule_path_beneath, &beneath, 0);
        ::close(folder);
    }
    const bool failed = ::syscall(restrict_self, ruleset, 0) != 0;
    ::close(ruleset);
    return failed ? "landlock_restrict_self" : nullptr;
}

void limit(int what, std::uint64_t value) {
    rlimit now{};
    if (::getrlimit(static_cast<__rlimit_resource_t>(what), &now) != 0) return;
    now.rlim_cur = std::min<rlim_t>(now.rlim_cur, value), now.rlim_max = std::min<rlim_t>(now.rlim_max, value);
    ::setrlimit(static_cast<__rlimit_resource_t>(what), &now);
}

bool contains_any(std::string_view text, std::initializer_list<std::string_view> parts) {
    return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) { return text.find(part) != std::string_view::npos; });
}

// Folders that TILEWRIGHT_BOX_WRITE names besides, and the devices: /dev/null is written by everybody.
void add_common(std::vector<fs::path>& writable) {
    writable.emplace_back("/dev");
    const std::string named = absolute_entries(environment("TILEWRIGHT_BOX_WRITE"));
    for (std::size_t begin = 0; begin < named.size();) {
        const std::size_t end = std::min(named.find(':', begin), named.size());
        if (end > begin) writable.emplace_back(named.substr(begin, end - begin));
        begin = end + 1;
    }
}

void add_cache(std::vector<fs::path>& writable) {
    const fs::path cache = CubinCache::standard().folder();
    if (cache.empty()) return;
    std::error_code ignored;
    fs::create_directories(cache, ignored);
    writable.push_back(cache);
}

}  // namespace

Box box_for_checks(const fs::path& scratch) {
    Box box;
    box.closed = true;
    box.network = Network::none;
    if (!scratch.empty()) box.writable.push_back(scratch);
    add_common(box.writable);
    add_cache(box.writable);
    return box;
}

Box box_for_gpu() {
    Box box;
    box.closed = true;
    box.network = Network::local;
    box.file_bytes = 64ull << 30;
    box.open_files = 65536;
    add_common(box.writable);
    add_cache(box.writable);
    std::error_code ignored;
    for (const fs::path& path :
         {fs::path("/proc"), fs::path("/run"), fs::path("/tmp"), fs::path("/var/tmp"), fs::temp_directory_path(ignored)})
        box.writable.push_back(path);
    if (const std::string home = environment("HOME"); !home.empty())
        for (const char* below : {".nv", ".cache", ".triton"}) box.writable.push_back(fs::path(home) / below);
    for (const char* name : {"CUDA_CACHE_PATH", "XDG_CACHE_HOME", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR"})
        if (const std::string folder = environment(name); !folder.empty()) box.writable.emplace_back(folder);
    return box;
}

Box box_for_profilers() {
    Box box = box_for_gpu();
    box.network = Network::all;
    box.profilers = true;
    return box;
}

Box box_for_proposers(const fs::path& scratch) {
    Box box;
    box.closed = true;
    box.network = Network::all;
    if (!scratch.empty()) box.writable.push_back(scratch);
    add_common(box.writable);
    return box;
}

std::string absolute_entries(std::string_view path) {
    std::string out;
    for (std::size_t begin = 0; begin <= path.size();) {
        const std::size_t end = std::min(path.find(':', begin), path.size());
        const std::string_view entry = path.substr(begin, end - begin);
        if (!entry.empty() && entry.front() == '/') out += (out.empty() ? "" : ":") + std::string(entry);
        begin = end + 1;
    }
    return out;
}

bool is_allowed_variable(std::string_view name) {
    std::string upper(name);
    for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    const std::string passed = "," + environment("TILEWRIGHT_PASS") + ",";
    if (!name.empty() && passed.find("," + std::string(name) + ",") != std::string::npos) return true;
    if (contains_any(upper, {"KEY", "TOKEN", "SECRET", "PASSW", "CREDENTIAL", "AUTH"})) return false;
    static constexpr std::string_view names[] = {
        "PATH",          "HOME",        "USER", "LOGNAME",  "SHELL",           "LANG",        "LANGUAGE", "TZ",
        "TERM",          "TMPDIR",      "PWD",  "HOSTNAME", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "NO_COLOR", "COLUMNS",
        "SSL_CERT_FILE", "SSL_CERT_DIR"};
    if (std::find(std::begin(names), std::end(names), name) != std::end(names)) return true;
    static constexpr std::string_view heads[] = {"LC_",         "XDG_",   "CUDA_",  "CUTLASS_", "NVIDIA_", "NV_",  "CUBLAS",
                                                 "TILEWRIGHT_", "PYTHON", "CONDA_", "TORCH",    "TRITON_", "OMP_", "MKL_",
                                                 "OPENBLAS_",   "ASAN_",  "UBSAN_", "LSAN_",    "TSAN_"};
    return std::any_of(std::begin(heads), std::end(heads), [&](std::string_view head) { return name.substr(0, head.size()) == head; });
}

std::vector<std::string> child_environment(Surroundings surroundings, const std::vector<std::string>& variables) {
    std::vector<std::string> out;
    for (char** entry = environ; *entry; ++entry) {
        const std::string_view text(*entry);
        const std::string_view name = text.substr(0, text.find('='));
        const bool replaced = std::any_of(variables.begin(), variables.end(),
                                          [&](const std::string& v) { return std::string_view(v).substr(0, v.find('=')) == name; });
        if (replaced || (surroundings == Surroundings::allowed && !is_allowed_variable(name))) continue;
        if (surroundings == Surroundings::allowed && (name == "PATH" || name == "PYTHONPATH" || name == "LD_LIBRARY_PATH"))
            out.push_back(std::string(name) + "=" + absolute_entries(text.substr(name.size() + 1)));
        else out.emplace_back(text);
    }
    out.insert(out.end(), variables.begin(), variables.end());
    return out;
}

BoxSupport box_support() {
    BoxSupport s;
    s.switched_off = environment("TILEWRIGHT_BOX") == "off";
    s.no_new_privileges = ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) >= 0;
    unsigned action = SECCOMP_RET_ERRNO;
    s.seccomp = kArchitecture != 0 && ::syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
    s.landlock = std::max(0, static_cast<int>(::syscall(landlock::create_ruleset, nullptr, 0, landlock::version_flag)));
    int reaper = 0;
    s.subreaper = ::prctl(PR_GET_CHILD_SUBREAPER, &reaper, 0, 0, 0) == 0;
    s.children_listed = ::access("/proc/thread-self/children", R_OK) == 0;
    return s;
}

PreparedBox::PreparedBox(const Box& box) : box_(box), support_(box_support()) {
    if (!box.closed) return;
    for (const fs::path& path : box.writable) paths_.push_back(path.string());
    filter_ = make_filter(box);
}

PreparedBox::~PreparedBox() = default;

const char* PreparedBox::enter() const {
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_FSIZE, box_.file_bytes);
    limit(RLIMIT_NOFILE, box_.open_files);
    if (!box_.closed || support_.switched_off) return nullptr;
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return nullptr;  // without it neither filter can be set
    if (support_.landlock > 0)
        if (const char* failed = restrict_writes(support_.landlock, paths_)) return failed;
    if (support_.seccomp) {
        const sock_fprog program{static_cast<unsigned short>(filter_.size()), const_cast<sock_filter*>(filter_.data())};
        if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0) return "seccomp";
    }
    return nullptr;
}

}  // namespace tw::runtime
