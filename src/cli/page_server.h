// A page that changes while something goes on, for a browser on this machine: http://127.0.0.1:PORT/.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/expected.h"
#include "plan/journal.h"

namespace tw::cli {

// Answers GET / with what `page` makes at that moment, and nothing else, to programs on this machine alone: it listens on the loopback
// address, and refuses a request whose Host is another name, so that a site that a browser shows cannot read it through a name of its own.
class PageServer {
public:
    // port 0: any that is free.
    static Expected<std::unique_ptr<PageServer>, std::string> start(int port, std::function<std::string()> page);
    ~PageServer();
    PageServer(const PageServer&) = delete;
    PageServer& operator=(const PageServer&) = delete;

    std::string address() const;

private:
    PageServer() = default;
    void serve();
    void answer(int connection) const;

    int listening_ = -1, port_ = 0;
    std::function<std::string()> page_;
    std::atomic<bool> over_{false};
    std::thread thread_;
};

// The run's page with the CUDA text of its best kernel, which is made in a worker: the kernel may be anybody's.
std::string page_of(const plan::RunDocument& document);

// The page with a script that asks for it again every two seconds and keeps open what is open; a server that has gone leaves the last
// one standing.
std::string live_page(std::string page);

}  // namespace tw::cli
