// `tilewright target list|dump|cases|convert|sums`: the instruction tables, for people and for the hardware probes.
#include <fmt/format.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "cli/command.h"
#include "cli/terminal.h"
#include "target/dump.h"
#include "target/instruction.h"

namespace tw::cli {

namespace target_command {

// Bit patterns of the source type on standard input, those of the result type on standard output, little-endian.
int convert_stream(const std::string& name) {
    for (const target::NamedConversion& c : target::named_conversions()) {
        if (c.name != name) continue;
        const auto in = static_cast<std::size_t>(c.source_bits / 8), out = static_cast<std::size_t>(c.result_bits / 8);
        std::vector<char> source(in * 65536), result(out * 65536);
        for (std::size_t n; (n = std::fread(source.data(), in, 65536, stdin)) > 0;) {
            for (std::size_t i = 0; i < n; ++i) {
                std::uint64_t value = 0;
                std::memcpy(&value, &source[i * in], in);
                value = c.apply(value);
                std::memcpy(&result[i * out], &value, out);
            }
            std::fwrite(result.data(), out, n, stdout);
        }
        return exit_fine;
    }
    return complain(exit_bad_input, "there is no conversion '" + name + "'",
                    "names are listed by `tilewright target dump --json` under \"conversions\"");
}

int sum_stream(const std::string& unit, const std::string& a, const std::string& b, const std::string& acc, int k) {
    const std::size_t words = 2 * static_cast<std::size_t>(k) + 1;
    std::vector<std::uint32_t> records(words * 4096);
    std::string why;
    for (std::size_t n; (n = std::fread(records.data(), 4 * words, 4096, stdin)) > 0;) {
        const auto sums = target::matrix_sums(unit, a, b, acc, k, std::span(records).first(n * words), why);
        if (!why.empty()) return complain(exit_bad_input, why);
        std::fwrite(sums.data(), 4, sums.size(), stdout);
    }
    return exit_fine;
}

int list_instructions(const std::string& arch_name) {
    const target::Arch* arch = target::find_arch(arch_name);
    if (!arch) {
        std::string known;
        for (const target::Arch& a : target::all_archs()) known += (known.empty() ? "" : ", ") + std::string(a.name);
        return complain(exit_bad_input, "there is no target '" + arch_name + "'", "one of " + known);
    }
    for (const target::Instruction& row : target::all_instructions()) {
        if (!target::available(*arch, row.op)) continue;
        fmt::print("{}\n    {}\n    {}; {}\n    PTX ISA {}\n", row.name, row.ptx, name(row.completion), row.rule, row.section);
    }
    return exit_fine;
}

}  // namespace target_command

std::function<int()> declare_target(CLI::App& app) {
    using namespace target_command;
    struct Options {
        std::string arch = "sm_90a", conversion, unit, a, b, acc;
        int k = 16;
        bool json = false;
    };
    auto options = std::make_shared<Options>();
    app.require_subcommand(1);
    CLI::App* list = app.add_subcommand("list", "instructions of a target, with their ordering rules");
    list->add_option("--arch", options->arch, "sm_80 or sm_90a");
    CLI::App* dump = app.add_subcommand("dump", "all tables as JSON");
    dump->add_flag("--json", options->json, "accepted for symmetry; the output is always JSON");
    CLI::App* cases = app.add_subcommand("cases", "what the hardware probes run and expect, as JSON");
    CLI::App* convert = app.add_subcommand("convert", "converts raw bit patterns from standard input to standard output");
    convert->add_option("name", options->conversion, "for example f32_to_bf16_rn")->required();
    CLI::App* sums = app.add_subcommand(
        "sums", "elements of D as the tensor cores add them: raw records on standard input (2 K + 1 words), D on standard output");
    sums->add_option("unit", options->unit, "mma or wgmma")->required();
    sums->add_option("a", options->a, "type of A")->required();
    sums->add_option("b", options->b, "type of B")->required();
    sums->add_option("d", options->acc, "type of the accumulator")->required();
    sums->add_option("k", options->k, "K steps of one instruction")->required()->check(CLI::Range(1, 64));
    return [=]() -> int {
        if (*dump) print_json(target::dump_tables());
        if (*cases) fmt::print("{}\n", target::dump_probe_cases().dump());
        if (*convert) return convert_stream(options->conversion);
        if (*sums) return sum_stream(options->unit, options->a, options->b, options->acc, options->k);
        if (*list) return list_instructions(options->arch);
        return exit_fine;
    };
}

}  // namespace tw::cli
