// torch as a peer: a Python process times our kernel and an expression in turn (bench/torch_peer.py).
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

namespace tw::runtime {

// The folder that holds bench/: here, or the source tree or installation that this program lies in; empty when there is none.
std::filesystem::path bench_folder();

// What the Python process needs to know to make the tensors of a request ("file" or "text", "sizes", ...). Null and a problem when the case
// cannot be described.
nlohmann::json torch_case(const nlohmann::json& request, std::string& problem);

// The torch peers of these cases (described by torch_case, with "torch", perhaps "prelude" and "setup"), each answered by {"ours_us",
// "peer_us", "ratio", "interval",
// ...} or {"problem"}. `python`: the interpreter. `told` hears of each answer as it comes, once, in order, from this thread or another,
// never from two at a time.
using TorchAnswer = std::function<void(std::size_t number, const nlohmann::json& answer)>;
nlohmann::json time_against_torch(const nlohmann::json& cases, double seconds_each, const std::string& python = "python3",
                                  const TorchAnswer& told = {});

// The expression of a peer "torch:NAME": {"torch", "prelude", "setup"} of bench/peers.json; null and a problem when there is none.
// Expressions come from that file only: a task names a peer, it cannot bring code along.
nlohmann::json named_torch_peer(const std::string& name, std::string& problem);

}  // namespace tw::runtime
