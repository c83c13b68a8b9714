// `tilewright completion bash|zsh|man`: what a shell completes, and the manual page, made from the commands themselves.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/terminal.h"

namespace tw::cli {
namespace {

// A command with its options, as another parser declares them.
struct Declared {
    std::string name, summary, help;
    std::vector<std::string> options;
};

std::vector<Declared> declared() {
    std::vector<Declared> all;
    for (const Command& command : commands()) {
        CLI::App app(command.summary);
        app.name(std::string("tilewright ") + command.name);
        (void)command.declare(app);
        add_example(app, command.name);
        Declared d{command.name, command.summary, app.help(), {}};
        for (const CLI::Option* option : app.get_options())
            for (const std::string& name : option->get_lnames()) d.options.push_back("--" + name);
        all.push_back(std::move(d));
    }
    return all;
}

std::string joined(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& w : words) text += (text.empty() ? "" : " ") + w;
    return text;
}

std::string bash() {
    std::vector<std::string> names;
    std::string cases;
    for (const Declared& d : declared()) {
        names.push_back(d.name);
        cases += fmt::format("        {}) options=\"{}\" ;;\n", d.name, joined(d.options));
    }
    return fmt::format(R"(# bash completion of tilewright: source it, or put it into a bash-completion folder as `tilewright`
_tilewright() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" options=""
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W "{} --help --version" -- "$word"))
        return
    fi
    case "${{COMP_WORDS[1]}}" in
{}    esac
    if [[ "$word" == -* ]]; then COMPREPLY=($(compgen -W "$options" -- "$word")); else COMPREPLY=($(compgen -f -- "$word")); fi
}}
complete -o filenames -F _tilewright tilewright
)",
                       joined(names), cases);
}

std::string zsh() {
    std::string names, cases;
    for (const Declared& d : declared()) {
        std::string summary;
        for (const char c : d.summary) summary += c == '\'' ? std::string("'\\''") : c == ':' ? std::string("\\:") : std::string(1, c);
        names += fmt::format("        '{}:{}'\n", d.name, summary);
        cases += fmt::format("        {}) compadd -- {} ;;\n", d.name, joined(d.options));
    }
    return fmt::format(R"(#compdef tilewright
# zsh completion of tilewright: put it into a folder of $fpath as `_tilewright`
_tilewright() {{
    local -a names
    names=(
{}    )
    if (( CURRENT == 2 )); then
        _describe 'command' names
        return
    fi
    if [[ "$PREFIX" == -* ]]; then
        case "$words[2]" in
{}        esac
    else
        _files
    fi
}}
compdef _tilewright tilewright
)",
                       names, cases);
}

// Lines of plain text for troff: a leading dot or quote would command it, a backslash begins an escape.
std::string troff(const std::string& text) {
    std::string out;
    bool begins = true;
    for (const char c : text) {
        if (begins && (c == '.' || c == '\'')) out += "\\&";
        if (c == '\\') out += "\\e";
        else if (c == '-') out += "\\-";
        else out += c;
        begins = c == '\n';
    }
    return out;
}

std::string manual() {
    std::string page = fmt::format(
        ".TH TILEWRIGHT 1 \"\" \"tilewright {}\"\n.SH NAME\ntilewright \\- GPU kernels that are proved and measured\n"
        ".SH SYNOPSIS\n.B tilewright\nCOMMAND [OPTIONS]\n.SH COMMANDS\n",
        TW_VERSION);
    for (const Declared& d : declared()) page += fmt::format(".SS {}\n.nf\n{}\n.fi\n", d.name, troff(d.help));
    return page +
           ".SH EXIT STATUS\n0 fine, 1 the kernel is wrong, 2 bad usage or input, 3 not proved or not measured, 70 a bug of tilewright.\n"
           ".SH ENVIRONMENT\nNO_COLOR: no colour on a terminal. TILEWRIGHT_CACHE, TILEWRIGHT_STATE: the folders of compiled kernels and of "
           "the journal.\n";
}

}  // namespace

std::function<int()> declare_completion(CLI::App& app) {
    auto shell = std::make_shared<std::string>();
    app.add_option("shell", *shell, "bash, zsh, or man for the manual page")->required();
    app.footer("Example: tilewright completion bash > ~/.local/share/bash-completion/completions/tilewright");
    return [shell]() -> int {
        if (*shell != "bash" && *shell != "zsh" && *shell != "man")
            return complain(exit_bad_input, "there is no completion for '" + *shell + "'",
                            did_you_mean(*shell, {"bash", "zsh", "man"}) + " bash, zsh and man are made");
        fmt::print("{}", *shell == "bash" ? bash() : *shell == "zsh" ? zsh() : manual());
        return exit_fine;
    };
}

}  // namespace tw::cli
