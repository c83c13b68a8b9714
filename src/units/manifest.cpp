#include <elf.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/stat.h>

#include <cmath>
#include <cstring>
#include <set>

#include "base/diagnostic.h"
#include "base/digest.h"
#include "base/input.h"
#include "base/text.h"
#include "units/folder.h"

namespace tw::units {
namespace manifest_file {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr const char* kSchema = "tilewright units 1";

bool plain_name(const std::string& name) {
    const auto plain = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-' || c == '_'; };
    return !name.empty() && name.size() <= 200 && name[0] != '.' && std::all_of(name.begin(), name.end(), plain);
}

// The note that the linker leaves: another build is another program.
int find_build_id(dl_phdr_info* info, std::size_t, void* out) {
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const auto& header = info->dlpi_phdr[i];
        if (header.p_type != PT_NOTE) continue;
        const char* at = reinterpret_cast<const char*>(info->dlpi_addr + header.p_vaddr);
        const char* end = at + header.p_memsz;
        while (at + sizeof(ElfW(Nhdr)) <= end) {
            ElfW(Nhdr) note;
            std::memcpy(&note, at, sizeof note);
            const char* name = at + sizeof note;
            const char* text = name + ((note.n_namesz + 3) & ~3u);
            if (text + note.n_descsz > end) break;
            if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0) {
                for (unsigned b = 0; b < note.n_descsz; ++b)
                    *static_cast<std::string*>(out) += fmt::format("{:02x}", static_cast<unsigned char>(text[b]));
                return 1;
            }
            at = text + ((note.n_descsz + 3) & ~3u);
        }
    }
    return 1;  // the first object is the program; others are not asked
}

}  // namespace manifest_file

using namespace manifest_file;

std::string program_identity() {
    static const std::string identity = [] {
        std::string id;
        dl_iterate_phdr(find_build_id, &id);
        return fmt::format("{} {}", TW_VERSION, id.empty() ? "no build id" : id);
    }();
    return identity;
}

json to_json(const Manifest& m) {
    json units = json::array();
    for (const Unit& u : m.units) units.push_back({{"name", u.name}, {"command", u.command}, {"words", u.words}});
    return {{"schema", kSchema},  {"command", m.command}, {"program", m.program}, {"seconds", m.seconds},
            {"inputs", m.inputs}, {"about", m.about},     {"units", units}};
}

std::string unit_digest(const Manifest& m, std::size_t unit) {
    const Unit& u = m.units[unit];
    Digest d;
    d.add_field(m.program);
    d.add_field(u.command);
    for (const std::string& word : u.words) {
        d.add_field(word);
        if (word.rfind("inputs/", 0) != 0) continue;
        const auto input = m.inputs.find(word.substr(7, word.find('@') == std::string::npos ? std::string::npos : word.find('@') - 7));
        d.add_field(input == m.inputs.end() ? "" : input->second);
    }
    return d.hex();
}

std::string manifest_digest(const Manifest& m) {
    Digest d;
    for (std::size_t i = 0; i < m.units.size(); ++i) d.add_field(unit_digest(m, i));
    return d.hex();
}

Result<Manifest> read_manifest(const fs::path& folder) {
    const auto path = folder / "units.json";
    const auto text = read_file(path, 64u << 20);
    if (!text) return fail(FailureKind::bad_input, text.error(), "name a folder that a command with --engine has made");
    const json j = parse_json(*text);
    const auto refused = [&](const std::string& why) {
        return fail(FailureKind::bad_input, fmt::format("{}: {}", path.string(), why),
                    "the folder is damaged or not ours: begin in another one");
    };
    if (text_in(j, "schema") != kSchema) return refused("this is no manifest of units");
    // Results are written and damaged ones removed there: a link would have that done elsewhere.
    for (const char* below : {"inputs", "results", "attempts", "failed", "logs"}) {
        std::error_code none;
        if (fs::is_symlink(fs::symlink_status(folder / below, none))) return refused(fmt::format("its folder '{}' is a link", below));
    }
    Manifest m;
    m.command = text_in(j, "command"), m.program = text_in(j, "program"), m.about = part_in(j, "about", json::object());
    const double seconds = number_in(j, "seconds", 600);
    m.seconds = std::isfinite(seconds) && seconds > 0 ? std::min(seconds, 1e6) : 600;
    const json inputs = part_in(j, "inputs", json::object());
    for (const auto& [name, digest] : inputs.items()) {
        if (!plain_name(name) || !digest.is_string()) return refused(fmt::format("'{}' is no name of an input", printable(name)));
        m.inputs[name] = digest.get<std::string>();
    }
    std::set<std::string> names;
    const json units = part_in(j, "units", json::array());
    if (units.empty() || units.size() > kMaxUnits)
        return refused(fmt::format("it has {} units; 1 to {} are allowed", units.size(), kMaxUnits));
    for (const json& entry : units) {
        Unit u{text_in(entry, "name"), text_in(entry, "command"), {}};
        for (const json& word : part_in(entry, "words", json::array())) {
            if (!word.is_string()) return refused("a word of a unit is no text");
            u.words.push_back(word.get<std::string>());
        }
        if (const std::string problem = unit_problem(u, m); !problem.empty())
            return refused(fmt::format("unit '{}': {}", printable(u.name), problem));
        if (u.name.empty() || u.name.size() > 400 || !names.insert(u.name).second)
            return refused(fmt::format("two units have the name '{}', or it is none", printable(u.name)));
        m.units.push_back(std::move(u));
    }
    return m;
}

Result<void> make_folder(const fs::path& folder, const Manifest& m, const std::map<std::string, std::string>& files) {
    std::error_code error;
    const auto trouble = [&](const std::string& why) {
        return fail(FailureKind::io_error, fmt::format("{}: {}", folder.string(), why),
                    "name a folder that every node can write, with --folder");
    };
    if (fs::exists(folder / "units.json", error)) {
        const auto there = read_manifest(folder);
        if (!there) return fail(FailureKind::bad_input, there.error().message, there.error().fix);
        if (manifest_digest(*there) == manifest_digest(m)) return {};
        return fail(FailureKind::bad_input,
                    fmt::format("{} holds other units: {}{}", folder.string(), printable(there->command),
                                there->program == m.program ? "" : " (of another build of this program)"),
                    "name another folder with --folder, or remove this one");
    }
    for (const char* below : {"inputs", "results", "attempts", "failed", "logs"}) {
        fs::create_directories(folder / below, error);
        if (error) return trouble(error.message());
    }
    for (const auto& [name, content] : files)
        if (auto ok = write_file_atomically(folder / "inputs" / name, content); !ok) return trouble(ok.error());
    if (auto ok = write_file_atomically(folder / "units.json", to_json(m).dump(1, ' ', false, json::error_handler_t::replace) + "\n"); !ok)
        return trouble(ok.error());
    return {};
}

}  // namespace tw::units
