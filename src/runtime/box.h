// The box: what a child process may see and do, as far as this kernel can enforce it.
//
// Workers handle untrusted text (kernels, answers of programs) or are untrusted programs (command proposers, peers). A box is made of
//   - an environment of allowed variables: no API keys, no relative entries in search paths;
//   - no new privileges, and no calls that reach into other processes or the kernel (seccomp);
//   - writes below named folders only (landlock); reading is not restricted;
//   - no network, or none beyond this machine (seccomp);
//   - limits on core dumps, file sizes and open files; memory and processes are watched from outside (runtime/worker.h).
// What the kernel lacks is left out; `tilewright doctor` says what that is. TILEWRIGHT_BOX=off leaves out everything but the environment.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

struct sock_filter;

namespace tw::runtime {

enum class Network : std::uint8_t { all, local, none };  // local: sockets of this machine (unix, netlink), nothing with an address

struct Box {
    bool closed = false;  // false: only limits and process groups, no seccomp and no landlock
    Network network = Network::all;
    bool profilers = false;                       // tracing other processes is allowed
    std::vector<std::filesystem::path> writable;  // with everything below; looked at when `closed`
    std::uint64_t file_bytes = 8ull << 30;        // the largest file it may write
    std::uint64_t open_files = 4096;
};

// Proof, emulation, compilation of untrusted kernels: no network, writes to the kernel cache and `scratch` only.
Box box_for_checks(const std::filesystem::path& scratch = {});
// Everything that opens a GPU: also devices, temporary files and the caches of CUDA's libraries.
Box box_for_gpu();
// ncu, compute-sanitizer: they trace the worker, and talk to it over the loopback.
Box box_for_profilers();
// A program that proposes kernels: it may use the network, and writes to `scratch` only.
Box box_for_proposers(const std::filesystem::path& scratch);

// The allowed part of our environment, and then `variables` ("NAME=value"). TILEWRIGHT_PASS="NAME,NAME" allows more.
enum class Surroundings : std::uint8_t { allowed, whole };
std::vector<std::string> child_environment(Surroundings surroundings, const std::vector<std::string>& variables);
bool is_allowed_variable(std::string_view name);
// A search path without entries that depend on the working folder.
std::string absolute_entries(std::string_view path);

// What this kernel can enforce.
struct BoxSupport {
    bool no_new_privileges = false, seccomp = false, subreaper = false, children_listed = false, switched_off = false;
    int landlock = 0;  // its version; 0: none
};
BoxSupport box_support();

// A box made ready before a fork: entering it allocates nothing.
class PreparedBox {
public:
    explicit PreparedBox(const Box& box);
    ~PreparedBox();
    PreparedBox(const PreparedBox&) = delete;
    PreparedBox& operator=(const PreparedBox&) = delete;
    // In the child. Returns the name of what failed, or nullptr.
    const char* enter() const;

private:
    Box box_;
    BoxSupport support_;
    std::vector<std::string> paths_;
    std::vector<sock_filter> filter_;
};

}  // namespace tw::runtime
