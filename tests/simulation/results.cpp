// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "simulation/results.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <span>

#include "support/reference.hpp"

namespace natagg::simulation {
namespace {

bool identical(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

/// Equal bits, except that any NaN stands for any other.
bool equal(float a, float b) {
  if (std::isnan(a) && std::isnan(b)) return true;
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

bool same_report(const worker::PartialReport& a, const worker::PartialReport& b) {
  return a.chunks == b.chunks && a.partial_chunks == b.partial_chunks &&
         a.least_ranks == b.least_ranks && a.missing == b.missing &&
         std::abs(a.variance_inflation - b.variance_inflation) < 1e-9;
}

/// One operation of a scenario on all its ranks.
class Judge {
 public:
  Judge(World& world, const Scenario& scenario, std::size_t first, std::size_t index)
      : may_be_partial_(scenario.straggler_deadline != 0 &&
                        proto::may_be_partial(scenario.operations[index].reduction)),
        name_("operation " + std::to_string(index)) {
    for (std::size_t rank = 0; rank < scenario.workers.size(); ++rank) {
      hosts_.push_back(&world.worker(first + rank));
      jobs_.push_back(&hosts_.back()->jobs()[index]);
      inputs_.push_back(jobs_.back()->input);
    }
    terms_ = {.seed = scenario.seed,
              .operation = scenario.first_operation + static_cast<std::uint32_t>(index),
              .rounding = scenario.rounding,
              .shift = scenario.shift,
              .reduction = scenario.operations[index].reduction};
  }

  std::vector<std::string> judge(bool may_fail, const Answers* answers) {
    const Job* good = nullptr;
    for (std::size_t rank = 0; rank < jobs_.size(); ++rank) {
      const Job& job = *jobs_[rank];
      if (job.status != NATAGG_OK) {
        if (!may_fail) {
          violation(rank, "ends with status " +
                              std::to_string(job.status.value_or(NATAGG_IN_PROGRESS)) + ": " +
                              hosts_[rank]->stream().failure().message);
        }
        continue;
      }
      if (good == nullptr) {
        good = &job;
        if (may_be_partial_) {
          judge_chunks(rank, answers);
        } else {
          judge_values(rank, 0, job.output, reference::all_reduce(inputs_, terms_));
        }
      }
      if (!identical(job.output, good->output)) violation(rank, "differs from another rank's");
      if (!same_report(job.partial, good->partial)) violation(rank, "is reported otherwise");
    }
    return violations_;
  }

 private:
  void judge_chunks(std::size_t rank, const Answers* answers) {
    if (answers == nullptr) return violation(rank, "may be partial, and nobody listened");
    const std::span<const float> output = jobs_[rank]->output;
    for (std::uint64_t element = 0; element < output.size();) {
      const Answers::Chunk* chunk = answers->find(terms_.operation, element);
      if (chunk == nullptr || element + chunk->count > output.size()) {
        return violation(rank, "was never answered at element " + std::to_string(element));
      }
      const auto values = output.subspan(element, chunk->count);
      const auto matches = [&](const Ranks& ranks) {
        return std::ranges::equal(
            values, reference::reduce_some(inputs_, ranks, terms_, element, chunk->count), equal);
      };
      if (!std::ranges::any_of(chunk->ranks, matches)) {
        judge_values(
            rank, element, values,
            reference::reduce_some(inputs_, *chunk->ranks.begin(), terms_, element, chunk->count));
      }
      element += chunk->count;
    }
  }

  void judge_values(std::size_t rank, std::uint64_t element, std::span<const float> values,
                    const std::vector<float>& expected) {
    const auto [mine, theirs] = std::ranges::mismatch(values, expected, equal);
    if (theirs == expected.end()) return;
    const auto where = element + static_cast<std::uint64_t>(theirs - expected.begin());
    violation(rank, "has " + std::to_string(*mine) + " for " + std::to_string(*theirs) +
                        " at element " + std::to_string(where));
  }

  void violation(std::size_t rank, const std::string& text) {
    violations_.push_back(name_ + " of rank " + std::to_string(rank) + ' ' + text);
  }

  bool may_be_partial_;
  std::string name_;
  std::vector<const WorkerHost*> hosts_;
  std::vector<const Job*> jobs_;
  std::vector<std::vector<float>> inputs_;
  reference::Terms terms_;
  std::vector<std::string> violations_;
};

}  // namespace

std::vector<std::string> check_results(World& world, const Scenario& scenario, std::size_t first,
                                       bool may_fail, const Answers* answers) {
  std::vector<std::string> violations;
  for (std::size_t index = 0; index < scenario.operations.size(); ++index) {
    const auto found = Judge(world, scenario, first, index).judge(may_fail, answers);
    violations.insert(violations.end(), found.begin(), found.end());
  }
  return violations;
}

}  // namespace natagg::simulation
