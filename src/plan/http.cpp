#include "plan/http.h"

#define CURL_DISABLE_TYPECHECK    // its macros would hide the functions that are looked up below
#define CURL_DISABLE_DEPRECATION  // old libraries know the older names only
#include <curl/curl.h>
#include <dlfcn.h>

#include <cstdlib>
#include <memory>

#include "base/text.h"

namespace tw::plan {
namespace {

constexpr std::size_t kMaxErrorBytes = 64u << 10;

// libcurl, opened at the first request: it brings forty libraries along, and everything but a model over HTTP works without it.
struct Curl {
    decltype(&::curl_global_init) global_init = nullptr;
    decltype(&::curl_easy_init) easy_init = nullptr;
    decltype(&::curl_easy_cleanup) easy_cleanup = nullptr;
    decltype(&::curl_easy_setopt) easy_setopt = nullptr;
    decltype(&::curl_easy_getinfo) easy_getinfo = nullptr;
    decltype(&::curl_easy_perform) easy_perform = nullptr;
    decltype(&::curl_easy_strerror) easy_strerror = nullptr;
    decltype(&::curl_slist_append) slist_append = nullptr;
    decltype(&::curl_slist_free_all) slist_free_all = nullptr;
    decltype(&::curl_getdate) getdate = nullptr;
};

const Curl* open_curl() {
    static const std::unique_ptr<const Curl> opened = []() -> std::unique_ptr<const Curl> {
        for (const char* name : {"libcurl.so.4", "libcurl-gnutls.so.4", "libcurl.so"}) {
            void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
            if (!library) continue;
            auto curl = std::make_unique<Curl>();
            bool complete = true;
            const auto find = [&](auto& call, const char* symbol) {
                call = reinterpret_cast<std::remove_reference_t<decltype(call)>>(dlsym(library, symbol));
                complete &= call != nullptr;
            };
            find(curl->global_init, "curl_global_init");
            find(curl->easy_init, "curl_easy_init");
            find(curl->easy_cleanup, "curl_easy_cleanup");
            find(curl->easy_setopt, "curl_easy_setopt");
            find(curl->easy_getinfo, "curl_easy_getinfo");
            find(curl->easy_perform, "curl_easy_perform");
            find(curl->easy_strerror, "curl_easy_strerror");
            find(curl->slist_append, "curl_slist_append");
            find(curl->slist_free_all, "curl_slist_free_all");
            find(curl->getdate, "curl_getdate");
            if (complete && curl->global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK) return curl;
        }
        return nullptr;
    }();
    return opened.get();
}

struct Exchange {
    const HttpRequest* request;
    HttpReply* reply;
    CURL* curl;
    const Curl* library;
    std::size_t received = 0;
};

std::size_t on_body(char* data, std::size_t size, std::size_t count, void* user) {
    auto& exchange = *static_cast<Exchange*>(user);
    const std::size_t bytes = size * count;
    exchange.received += bytes;
    if (exchange.received > exchange.request->max_bytes) {
        exchange.reply->error = "the reply is longer than the limit";
        return 0;
    }
    long status = 0;
    exchange.library->easy_getinfo(exchange.curl, CURLINFO_RESPONSE_CODE, &status);
    if (status >= 200 && status < 300) {
        if (exchange.request->on_data && !exchange.request->on_data(std::string_view(data, bytes))) {
            exchange.reply->stopped = true;
            return 0;
        }
    } else if (exchange.reply->body.size() < kMaxErrorBytes) {
        exchange.reply->body.append(data, std::min(bytes, kMaxErrorBytes - exchange.reply->body.size()));
    }
    return bytes;
}

std::size_t on_header(char* data, std::size_t size, std::size_t count, void* user) {
    auto& exchange = *static_cast<Exchange*>(user);
    auto& reply = *exchange.reply;
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
        const std::time_t date = exchange.library->getdate(value.c_str(), nullptr);
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
    HttpReply reply;
    const Curl* library = open_curl();
    if (!library) {
        reply.error = "libcurl.so.4 was not found, which requests over HTTP need; install it (Debian: apt-get install libcurl4)";
        return reply;
    }
    const std::unique_ptr<CURL, void (*)(CURL*)> curl(library->easy_init(), library->easy_cleanup);
    if (!curl) {
        reply.error = "libcurl could not be started";
        return reply;
    }
    curl_slist* list = nullptr;
    for (const std::string& header : request.headers) list = library->slist_append(list, header.c_str());
    const std::unique_ptr<curl_slist, void (*)(curl_slist*)> headers(list, library->slist_free_all);
    Exchange exchange{&request, &reply, curl.get(), library};
    char words[CURL_ERROR_SIZE] = "";
    CURL* c = curl.get();
    library->easy_setopt(c, CURLOPT_URL, request.url.c_str());
    library->easy_setopt(c, CURLOPT_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
    library->easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);  // a key must not follow a redirect
    library->easy_setopt(c, CURLOPT_HTTPHEADER, headers.get());
    library->easy_setopt(c, CURLOPT_POST, 1L);
    library->easy_setopt(c, CURLOPT_POSTFIELDS, request.body.data());
    library->easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    library->easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    library->easy_setopt(c, CURLOPT_CONNECTTIMEOUT, 20L);
    library->easy_setopt(c, CURLOPT_TIMEOUT_MS,
                         static_cast<long>(std::max(1.0, std::min(request.seconds, 1e6) * 1000)));  // 0 would mean no limit
    library->easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, 1L);
    library->easy_setopt(c, CURLOPT_LOW_SPEED_TIME, static_cast<long>(request.idle_seconds < 1 ? 1 : request.idle_seconds));
    library->easy_setopt(c, CURLOPT_ERRORBUFFER, words);
    library->easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body);
    library->easy_setopt(c, CURLOPT_WRITEDATA, &exchange);
    library->easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header);
    library->easy_setopt(c, CURLOPT_HEADERDATA, &exchange);
    const CURLcode code = library->easy_perform(c);
    library->easy_getinfo(c, CURLINFO_RESPONSE_CODE, &reply.status);
    if (code != CURLE_OK && reply.error.empty() && !reply.stopped) reply.error = words[0] ? words : library->easy_strerror(code);
    return reply;
}

}  // namespace tw::plan
