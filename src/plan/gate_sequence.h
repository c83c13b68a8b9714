// What every judge of static gates shares: one gate after another with its time and detail, the first refusal, which sizes a kernel takes.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "emulate/trial.h"
#include "plan/gates.h"

namespace tw::plan {

class GateSequence {
protected:
    enum class Answer { pass, refuse, skip };

    GateSequence(const tasks::Task& task, const std::string& source, const GateOptions& options)
        : task_(task), source_(source), options_(options) {}

    template <class F>
    bool gate(const char* name, F&& work) {
        if (options_.on_gate) options_.on_gate(name);
        const auto begin = std::chrono::steady_clock::now();
        detail_.clear();
        const Answer a = work();
        j_.gates.push_back({{"gate", name},
                            {"passed", a == Answer::skip ? nlohmann::json(nullptr) : nlohmann::json(a == Answer::pass)},
                            {"seconds", std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()},
                            {"detail", detail_}});
        return a != Answer::refuse;
    }
    Answer refuse(FailureClass failure, std::string feedback, std::string line) {
        j_.failure = failure;
        j_.feedback = std::move(feedback);
        j_.message = detail_ = std::move(line);
        return Answer::refuse;
    }

    std::vector<std::int64_t> sizes_for(const ir::Kernel& k, const tasks::Sizes& over) const {
        std::vector<std::int64_t> out;
        for (const std::string& name : k.sizes) {
            std::int64_t v = task_.size(name);
            for (const auto& [n, value] : over)
                if (n == name) v = value;
            out.push_back(v);
        }
        return out;
    }
    static bool accepts(const ir::Kernel& k, const std::vector<std::int64_t>& sizes) {
        for (const ir::Assumption& a : k.assumptions) {
            const auto v = emulate::size_value(a.condition, sizes);
            if (!v || *v == 0) return false;
        }
        return true;
    }

    const tasks::Task& task_;
    const std::string& source_;
    GateOptions options_;
    Judgement j_;
    std::string detail_;
};

}  // namespace tw::plan
