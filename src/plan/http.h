// One HTTP POST, with a streamed reply.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tw::plan {

struct HttpRequest {
    std::string url;                   // http or https
    std::vector<std::string> headers;  // "Name: value"; may hold a key, so they are never put into a message
    std::string body;
    double seconds = 600;       // whole exchange
    double idle_seconds = 120;  // without a byte
    std::size_t max_bytes = 32u << 20;
    // Each piece of a successful (2xx) reply as it arrives; false ends the exchange.
    std::function<bool(std::string_view)> on_data;
};

struct HttpReply {
    long status = 0;                    // 0: no answer at all
    std::string body;                   // of a reply that is not 2xx, at most 64 KiB of it
    std::optional<double> retry_after;  // seconds, from Retry-After or retry-after-ms
    std::string error;                  // of the transport; empty when the exchange was whole
    bool stopped = false;               // by on_data
};

HttpReply http_post(const HttpRequest& request);

}  // namespace tw::plan
