#include "plan/http.h"

#include <curl/curl.h>

#include <cstdlib>
#include <memory>
#include <mutex>

#include "base/text.h"

namespace tw::plan {
namespace {

constexpr std::size_t kMaxErrorBytes = 64u << 10;

struct Transfer {
    const HttpRequest* request;
    HttpReply* reply;
    CURL* curl;
    std::size_t received = 0;
};

std::size_t on_body(char* data, std::size_t size, std::size_t count, void* user) {
    auto& transfer = *static_cast<Transfer*>(user);
    const std::size_t bytes = size * count;
    transfer.received += bytes;
    if (transfer.received > transfer.request->max_bytes) {
        transfer.reply->error = "the reply is longer than the limit";
        return 0;
    }
    long status = 0;
    curl_easy_getinfo(transfer.curl, CURLINFO_RESPONSE_CODE, &status);
    if (status >= 200 && status < 300) {
        if (transfer.request->on_data && !transfer.request->on_data(std::string_view(data, bytes))) {
            transfer.reply->stopped = true;
            return 0;
        }
    } else if (transfer.reply->body.size() < kMaxErrorBytes) {
        transfer.reply->body.append(data, std::min(bytes, kMaxErrorBytes - transfer.reply->body.size()));
    }
    return bytes;
}

std::size_t on_header(char* data, std::size_t size, std::size_t count, void* user) {
    auto& reply = *static_cast<HttpReply*>(user);
    const std::string_view line = trim(std::string_view(data, size * count));
    const auto colon = line.find(':');
    if (colon == std::string_view::npos) return size * count;
    std::string name(line.substr(0, colon));
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (name != "retry-after" && name != "retry-after-ms") return size * count;
    const std::string value(trim(line.substr(colon + 1)));
    char* rest = nullptr;
    double seconds = std::strtod(value.c_str(), &rest);
    if (rest == value.c_str() || *rest || !(seconds >= 0)) {
        const std::time_t date = curl_getdate(value.c_str(), nullptr);
        if (date < 0) return size * count;
        seconds = std::max(0.0, std::difftime(date, std::time(nullptr)));
    } else if (name == "retry-after-ms") {
        seconds /= 1000;
    }
    reply.retry_after = seconds;
    return size * count;
}

}  // namespace

HttpReply http_post(const HttpRequest& request) {
    static std::once_flag once;
    std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
    HttpReply reply;
    const std::unique_ptr<CURL, void (*)(CURL*)> curl(curl_easy_init(), curl_easy_cleanup);
    if (!curl) {
        reply.error = "libcurl could not be started";
        return reply;
    }
    curl_slist* list = nullptr;
    for (const std::string& header : request.headers) list = curl_slist_append(list, header.c_str());
    const std::unique_ptr<curl_slist, void (*)(curl_slist*)> headers(list, curl_slist_free_all);
    Transfer transfer{&request, &reply, curl.get()};
    char words[CURL_ERROR_SIZE] = "";
    CURL* c = curl.get();
    curl_easy_setopt(c, CURLOPT_URL, request.url.c_str());
    curl_easy_setopt(c, CURLOPT_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
    curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);  // a key must not follow a redirect
    curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers.get());
    curl_easy_setopt(c, CURLOPT_POST, 1L);
    curl_easy_setopt(c, CURLOPT_POSTFIELDS, request.body.data());
    curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, 20L);
    curl_easy_setopt(c, CURLOPT_TIMEOUT_MS,
                     static_cast<long>(std::max(1.0, std::min(request.seconds, 1e6) * 1000)));  // 0 would mean no limit
    curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, static_cast<long>(request.idle_seconds < 1 ? 1 : request.idle_seconds));
    curl_easy_setopt(c, CURLOPT_ERRORBUFFER, words);
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, &transfer);
    curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(c, CURLOPT_HEADERDATA, &reply);
    const CURLcode code = curl_easy_perform(c);
    curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &reply.status);
    if (code != CURLE_OK && reply.error.empty() && !reply.stopped) reply.error = words[0] ? words : curl_easy_strerror(code);
    return reply;
}

}  // namespace tw::plan
