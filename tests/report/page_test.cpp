// A run's page and certificate: whole, self-contained, and safe whatever the run holds.
#include "report/page.h"

#include <gtest/gtest.h>

#include "report/check_page.h"
#include "report/evidence.h"
#include "report/run_text.h"

namespace tw::report {
namespace page_test {

plan::RunDocument a_run() {
    plan::RunDocument d;
    d.run.id = "gemm-1";
    d.run.task_name = "gemm";
    d.run.task_text = "name = \"gemm\"\n";
    d.run.proposer = "builtin";
    d.run.state = "finished";
    d.run.facts = {{"peer", {{"name", "cuBLASLt"}, {"microseconds", 200.0}}},
                   {"roofline", {{"microseconds", 140.0}, {"bound", "compute"}}}};
    for (int n = 0; n < 4; ++n) {
        plan::Step s;
        s.number = n;
        s.parent = n - 1;
        s.stage = "memory";
        s.technique = n ? "vector-width" : "";
        s.outcome = n == 2 ? "failed" : "accepted";
        s.verdict = n == 2 ? "violated" : "proved";
        s.source = "kernel " + std::to_string(n) + "\n";
        s.diff = n ? "@@ -1,1 +1,1 @@\n-old\n+new\n" : "";
        if (n != 2) s.microseconds = 1000.0 / (n + 1), s.speedup = n + 1.0, s.roofline_share = 0.1 * n;
        s.evidence = {{"proved", 12}, {"obligations", 12}, {"used", {"lemma: periodic cut-off"}}};
        s.gates = nlohmann::json::array({{{"gate", "emulate"}, {"passed", true}, {"seconds", 0.1}, {"detail", "ok"}},
                                         {{"gate", "test"}, {"passed", nullptr}, {"seconds", 0}, {"detail", "no GPU"}}});
        d.steps.push_back(s);
    }
    return d;
}

TEST(Page, HoldsThePathTheCurveTheProofAndTheKernel) {
    const std::string page = run_page(a_run());
    for (const char* part : {"<svg", "roofline 140 us", "peer 200 us", "12 of 12 assertions", "lemma: periodic cut-off", "kernel 3",
                             "id=\"step-2\"", "vector-width", "250.0 us", "prefers-color-scheme"})
        EXPECT_NE(page.find(part), std::string::npos) << part;
    for (const char* part : {"<script", "http:", "https:", "url(", "@import", "<link", "<img"})
        EXPECT_EQ(page.find(part), std::string::npos) << part;
}

// At the end ours took 320 us and the peer 400 us, at a lower clock than the best step's 250 us: the peer stands at 1.25 times that, not at
// 400.
TEST(Page, ThePeerIsShownByTheRatioOfTheRunThatTimedBoth) {
    plan::RunDocument d = a_run();
    d.run.facts["peer"] = {{"name", "cuBLASLt"}, {"microseconds", 400.0}, {"ours_microseconds", 320.0}, {"ratio", 1.25}};
    const std::string page = run_page(d);
    EXPECT_NE(page.find("peer 312 us"), std::string::npos);
    EXPECT_NE(page.find("1.25x"), std::string::npos);
    EXPECT_NE(run_text(d).find("400.0 us beside ours in the same run: ours is 1.250 times as fast"), std::string::npos) << run_text(d);
}

TEST(Page, TheCudaTextHasATabWhereThereIsOne) {
    const std::string page = run_page(a_run(), "__global__ void k(int* p) { p[0] < 1; }");
    EXPECT_NE(page.find("id=\"tab-cuda\""), std::string::npos);
    EXPECT_NE(page.find("p[0] &lt; 1;"), std::string::npos);
    EXPECT_EQ(run_page(a_run()).find("id=\"tab-cuda\""), std::string::npos);
}

// Step 2 took less time than the best one, at another clock: in turn it gained nothing.
TEST(Page, ARatioInTurnStandsBesideATimeAndNothingIsCalledSlower) {
    plan::RunDocument d = a_run();
    plan::Step& s = d.steps[2];
    s.outcome = "rejected", s.failure_class = "slower", s.verdict = "proved", s.microseconds = 240.0;
    s.message = "stages=6: 0.99x of the best, kept on trial";
    s.evidence["gpu"] = {{"ratio", 0.9912}, {"ratio_interval", {0.985, 0.997}}};
    const std::string page = run_page(d);
    EXPECT_NE(page.find("0.991x [0.985, 0.997]"), std::string::npos);
    EXPECT_NE(page.find("no gain: stages=6, kept on trial"), std::string::npos);
    EXPECT_EQ(page.find("slower"), std::string::npos);
    EXPECT_NE(step_line(s).find("no gain: stages=6: 0.99x of the best"), std::string::npos) << step_line(s);
}

// The page of a check is made from JSON that anybody may have written.
TEST(CheckPage, TakesFieldsOfAnyType) {
    using nlohmann::json;
    const std::string evil = "<script>x</script>";
    const json step = {{"who", evil}, {"role", 3}, {"place", evil}, {"iteration", {{evil, evil}}}, {"action", json::array()}};
    const json picture = {{"title", evil}, {"rows", 3}, {"columns", {evil}}, {"cells", {{1, evil}, 2}}, {"wrong", {{true}, evil}}};
    for (const json& c : {json{{"code", evil},
                               {"other", {{"place", {{"line", evil}}}}},
                               {"trace", {step, 3, step}},
                               {"layout", picture},
                               {"picture", picture},
                               {"repair", 4},
                               {"missing", evil}},
                          json{{"other", 3}, {"trace", 3}, {"layout", 3}, {"repair", {{"proved", "yes"}}}}}) {
        const std::string page =
            check_page({{"file", evil}, {"kernels", {{{"kernel", evil}, {"assertions", {{{"status", 3}}, 4}}, {"counterexample", c}}, 5}}});
        EXPECT_EQ(page.find("<script"), std::string::npos);
    }
    EXPECT_NE(check_page(json()).find("<h1>"), std::string::npos);
}

TEST(Page, EverythingIsEscaped) {
    plan::RunDocument d = a_run();
    const std::string evil = "</pre><script>alert('x')</script>\"onload=\"y\x1b[31m\xff";
    d.run.id = d.run.task_name = d.run.task_text = d.run.proposer = d.run.reason = d.run.state = d.run.version = evil;
    d.run.facts["statement"] = evil;
    d.run.facts["peer"] = evil;
    for (plan::Step& s : d.steps) {
        s.stage = s.technique = s.outcome = s.verdict = s.failure_class = s.message = s.source = s.diff = evil;
        s.gates = {{{"gate", evil}, {"passed", evil}, {"detail", evil}, {"seconds", evil}}, 3};
        s.evidence = {{"used", {evil, 4}}, {"proved", evil}};
        s.exchanges.push_back({evil, evil, evil, evil, evil, 1, 1, 0, 0, evil});
    }
    d.steps[1].outcome = "accepted";
    const std::string page = run_page(d);
    EXPECT_EQ(page.find("<script"), std::string::npos);
    EXPECT_EQ(page.find("\"onload"), std::string::npos);
    EXPECT_EQ(page.find('\x1b'), std::string::npos);
    EXPECT_EQ(page.find('\xff'), std::string::npos);
    EXPECT_EQ(run_text(d).find('\x1b'), std::string::npos);
    EXPECT_EQ(step_text(d.steps[0]).find('\x1b'), std::string::npos);
    EXPECT_EQ(step_line(d.steps[0]).find('\n'), std::string::npos);
}

TEST(Page, ARunWithNothingInItHasAPage) {
    EXPECT_NE(run_page({}).find("no kernel was accepted"), std::string::npos);
    plan::RunDocument d = a_run();
    for (plan::Step& s : d.steps) s.microseconds = 0.0 / 0.0;
    EXPECT_EQ(speed_curve(d), "");
    d.steps[0].microseconds = 1e300;
    d.steps[1].microseconds = 1e-300;
    EXPECT_NE(speed_curve(d), "");
}

TEST(Evidence, SaysWhatItEstablishesAndWhatNot) {
    plan::RunDocument d = a_run();
    const auto made = evidence_certificate(d);
    ASSERT_TRUE(made);
    const nlohmann::json& c = *made;
    EXPECT_EQ(c["run"]["step"], 3);
    EXPECT_EQ(c["proof"]["verdict"], "proved");
    EXPECT_EQ(c["timing"]["microseconds"], 250.0);
    EXPECT_EQ(c["missing"], nlohmann::json::array({"not tested on a GPU", "no fresh inputs", "no held-out shapes"}));
    const auto back = certified_kernel(nlohmann::json::parse(c.dump()));
    ASSERT_TRUE(back) << back.error().text();
    EXPECT_EQ(back->source, "kernel 3\n");
    EXPECT_DOUBLE_EQ(*back->microseconds, 250.0);
    nlohmann::json changed = c;
    changed["kernel"]["source"] = "kernel 4\n";
    EXPECT_FALSE(certified_kernel(changed));
    for (const nlohmann::json& bad :
         {nlohmann::json(), nlohmann::json(3), nlohmann::json::object(), nlohmann::json{{"kind", "tilewright evidence"}},
          nlohmann::json{{"kind", "tilewright evidence"}, {"schema", 1}, {"kernel", 3}}})
        EXPECT_FALSE(certified_kernel(bad));
    EXPECT_TRUE(evidence_certificate(d, 2)) << "a refused kernel has a certificate that says so";
    EXPECT_FALSE(evidence_certificate(d, 9));
    EXPECT_FALSE(evidence_certificate({}));
}

}  // namespace page_test
}  // namespace tw::report
