// The Python process behind torch peers, played by a shell script: answers come one by one, a crash costs its case.
#include "runtime/torch_peer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "temporary_folder.h"

namespace tw::runtime {
namespace torch_peer_test {

using nlohmann::json;

// A program in the interpreter's place: $1 the script, $2 cases, $3 answers, $4 the first case to run.
std::string interpreter(const std::filesystem::path& folder, const std::string& body) {
    const auto path = folder / "python";
    std::ofstream(path) << "#!/bin/sh\n" << body;
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path.string();
}

struct Heard {
    std::vector<std::size_t> order;
    json answers = json::object();
    TorchAnswer listener() {
        return [this](std::size_t n, const json& a) {
            order.push_back(n);
            answers[std::to_string(n)] = a;
        };
    }
};

TEST(TorchPeer, ACrashCostsItsCaseAndEveryAnswerIsToldOnce) {
    testing::TemporaryFolder folder;
    const std::string python = interpreter(folder.path(), R"(n=$4
while [ $n -lt 4 ]; do
  echo "{\"began\": $n}" >> $3
  [ $n = 1 ] && kill -9 $$
  echo "{\"number\": $n, \"ratio\": $n}" >> $3
  n=$((n + 1))
done
)");
    Heard heard;
    const json answers =
        time_against_torch(json::array({json::object(), json::object(), json::object(), json::object()}), 5, python, heard.listener());
    ASSERT_EQ(answers.size(), 4u);
    EXPECT_EQ(heard.order, (std::vector<std::size_t>{0, 1, 2, 3}));
    EXPECT_EQ(answers[0]["ratio"], 0);
    EXPECT_TRUE(answers[1].contains("problem")) << answers[1];
    EXPECT_FALSE(answers[1].contains("ratio"));
    EXPECT_EQ(answers[3]["ratio"], 3);
    for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(heard.answers[std::to_string(i)], answers[i]);
}

TEST(TorchPeer, AProcessThatSaysNothingIsAProblemOfEveryCase) {
    testing::TemporaryFolder folder;
    Heard heard;
    const json answers = time_against_torch(json::array({json::object(), json::object()}), 5,
                                            interpreter(folder.path(), "echo 'No module named torch' >&2; exit 1\n"), heard.listener());
    ASSERT_EQ(heard.order.size(), 2u);
    for (const json& a : answers) EXPECT_NE(a["problem"].get<std::string>().find("No module named torch"), std::string::npos) << a;
}

}  // namespace torch_peer_test
}  // namespace tw::runtime
