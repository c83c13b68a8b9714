#include "cli/page_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <random>
#include <string_view>

#include "codegen/emit.h"
#include "report/page.h"
#include "report/run_text.h"
#include "runtime/box.h"
#include "runtime/launch.h"
#include "runtime/worker.h"

namespace tw::cli {
namespace page_server {

constexpr std::size_t most_request_bytes = 8192;

// The lines of a request up to the empty one; empty: too long, too slow or gone.
std::string read_head(int connection) {
    std::string head;
    char buffer[1024];
    while (head.find("\r\n\r\n") == std::string::npos) {
        const ssize_t got = ::recv(connection, buffer, sizeof buffer, 0);
        if (got <= 0 || head.size() + static_cast<std::size_t>(got) > most_request_bytes) return {};
        head.append(buffer, static_cast<std::size_t>(got));
    }
    return head;
}

std::string host_of(std::string_view head) {
    for (std::size_t at = head.find("\r\n"); at != std::string_view::npos && at + 2 < head.size(); at = head.find("\r\n", at + 2)) {
        std::string_view line = head.substr(at + 2, head.find("\r\n", at + 2) - at - 2);
        if (line.size() < 5 || ::strncasecmp(line.data(), "host:", 5) != 0) continue;
        line.remove_prefix(5);
        while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
        while (!line.empty() && line.back() == ' ') line.remove_suffix(1);
        return std::string(line);
    }
    return {};
}

void send_all(int connection, std::string_view text) {
    while (!text.empty()) {
        const ssize_t sent = ::send(connection, text.data(), text.size(), MSG_NOSIGNAL);
        if (sent <= 0) return;
        text.remove_prefix(static_cast<std::size_t>(sent));
    }
}

}  // namespace page_server

Expected<std::unique_ptr<PageServer>, std::string> PageServer::start(int port, std::function<std::string()> page) {
    std::unique_ptr<PageServer> made(new PageServer);
    made->page_ = std::move(page);
    made->listening_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (made->listening_ < 0) return Unexpected{fmt::format("no socket for the page: {}", std::strerror(errno))};
    const int yes = 1;
    ::setsockopt(made->listening_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.sin_port = htons(static_cast<std::uint16_t>(port));
    socklen_t length = sizeof at;
    if (::bind(made->listening_, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0 || ::listen(made->listening_, 8) != 0 ||
        ::getsockname(made->listening_, reinterpret_cast<sockaddr*>(&at), &length) != 0)
        return Unexpected{fmt::format("the page cannot be served on port {}: {}", port, std::strerror(errno))};
    made->port_ = ntohs(at.sin_port);
    made->thread_ = std::thread([server = made.get()] { server->serve(); });
    return made;
}

PageServer::~PageServer() {
    over_ = true;
    if (thread_.joinable()) thread_.join();
    if (listening_ >= 0) ::close(listening_);
}

std::string PageServer::address() const { return fmt::format("http://127.0.0.1:{}/", port_); }

void PageServer::serve() {
    while (!over_) {
        pollfd waiting{listening_, POLLIN, 0};
        if (::poll(&waiting, 1, 200) <= 0) continue;
        const int connection = ::accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC);
        if (connection < 0) continue;
        const timeval patience{2, 0};
        ::setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        ::setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
        answer(connection);
        ::close(connection);
    }
}

void PageServer::answer(int connection) const {
    using namespace page_server;
    const std::string head = read_head(connection);
    const std::string_view first = std::string_view(head).substr(0, head.find("\r\n"));
    const std::string host = host_of(head);
    const bool ours = host == fmt::format("127.0.0.1:{}", port_) || host == fmt::format("localhost:{}", port_);
    std::string status = "200 OK", body;
    if (head.empty()) return;
    if (!ours) status = "403 Forbidden", body = "This page is for a browser on the same machine.\n";
    else if (!first.starts_with("GET / ")) status = "404 Not Found", body = "There is one page here: /\n";
    else body = page_();
    send_all(connection,
             fmt::format("HTTP/1.1 {}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\nCache-Control: no-store\r\n"
                         "X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
                         status, body.size()));
    send_all(connection, body);
}

std::string page_of(const plan::RunDocument& document) {
    const plan::Step* best = report::best_step(document);
    if (!best || best->source.empty()) return report::run_page(document);
    // A page that is asked for again and again has the same best kernel most of the time.
    static std::mutex one_at_a_time;
    static std::string source, cuda;
    const std::lock_guard guard(one_at_a_time);
    if (source != best->source) {
        runtime::WorkerLimits limits;
        limits.seconds = 10;
        limits.answer_bytes = 4u << 20;
        limits.box = runtime::box_for_checks();
        const auto made = runtime::run_in_worker(
            [&] {
                std::string text;
                auto module = runtime::KernelModule::from_text("kernel.py", best->source, {});
                if (!module) return text;
                for (const ir::Kernel& kernel : (*module)->ir().kernels)
                    if (const auto emitted = codegen::emit(kernel, "kernel.py")) text += emitted->source + "\n";
                return text;
            },
            limits);
        source = best->source;
        cuda = made.end == runtime::WorkerEnd::finished ? made.answer : std::string();
    }
    return report::run_page(document, cuda);
}

std::string live_page(std::string page) {
    // The page's own policy lets nothing run. This script may, by a number that nothing on the page can know.
    std::random_device random;
    const std::string number = fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
    constexpr std::string_view nothing = "default-src 'none'; style-src 'unsafe-inline'";
    if (const std::size_t at = page.find(nothing); at != std::string::npos)
        page.insert(at + nothing.size(), fmt::format("; script-src 'nonce-{}'; connect-src 'self'", number));
    const std::string script =
        fmt::format("<script nonce=\"{}\">", number) +
        "setInterval(async()=>{try{const r=await fetch('/',{cache:'no-store'});if(!r.ok)return;const d=new "
        "DOMParser().parseFromString(await r.text(),'text/html');"
        "for(const e of document.querySelectorAll('input:checked'))if(d.getElementById(e.id))d.getElementById(e.id).checked=true;"
        "for(const e of document.querySelectorAll('details[id]'))if(d.getElementById(e.id))d.getElementById(e.id).open=e.open;"
        "if(!document.querySelector('style'))for(const e of d.querySelectorAll('style'))document.head.append(e);"
        "const y=scrollY;document.title=d.title;document.body.replaceWith(d.body);scrollTo(0,y)}catch(e){}},2000)</script>";
    const std::size_t at = page.find("</head>");
    if (at != std::string::npos) page.insert(at, script);
    return page;
}

}  // namespace tw::cli
