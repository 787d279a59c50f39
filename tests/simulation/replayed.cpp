// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "simulation/replayed.hpp"

#include "tools/trace/shard_replay.hpp"

namespace natagg::simulation {

void replay(const std::string& path, Replayed& replayed) {
  try {
    const tools::TraceSurvey survey(path);
    const tools::ReplayReport report = tools::replay_into_shards(survey, {}, 1);
    replayed.answers += report.answers.right;
    for (const tools::Findings* findings : {&survey.findings(), &report.findings}) {
      for (const tools::Finding& finding : findings->kept()) {
        replayed.findings.push_back(finding.text);
      }
    }
    if (report.answers.missing + survey.recorded().wrong != 0) {
      replayed.findings.push_back(tools::to_text(survey, report));
    }
  } catch (const tools::TraceError& error) {
    replayed.refusals.emplace_back(error.what());
  }
}

}  // namespace natagg::simulation
