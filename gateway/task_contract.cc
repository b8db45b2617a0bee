#include "gateway/task_contract.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/quoted.h"

namespace tandem::gateway {
namespace {

namespace pb = hazel::rpc;

// Longer names are cut for the comparison.
constexpr size_t kMostCompared = 128;
constexpr int kManifestVersion = 1;

// The number of characters to insert, remove or replace.
size_t Changes(absl::string_view one, absl::string_view other) {
  one = one.substr(0, kMostCompared);
  other = other.substr(0, kMostCompared);
  std::vector<size_t> row(other.size() + 1);
  for (size_t j = 0; j <= other.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= one.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= other.size(); ++j) {
      const size_t replaced = diagonal + (one[i - 1] == other[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

bool Has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::vector<std::string> Named(
    const google::protobuf::RepeatedPtrField<std::string>& names, uint32_t size,
    absl::string_view fallback) {
  std::vector<std::string> all(names.begin(), names.end());
  all.resize(std::min<size_t>(all.size(), size));
  while (all.size() < size) {
    all.push_back(absl::StrCat(fallback, "_", all.size()));
  }
  return all;
}

pb::ContractValidationMessage Problem(absl::string_view severity,
                                      absl::string_view component,
                                      const std::string& term,
                                      const std::string& text,
                                      const std::string& suggestion) {
  pb::ContractValidationMessage problem;
  problem.set_severity(std::string(severity));
  problem.set_component(std::string(component));
  problem.set_term_name(term);
  problem.set_message(text);
  problem.set_suggestion(suggestion);
  return problem;
}

// Compares terms of one component with the task's names.
class Checker {
 public:
  Checker(absl::string_view component, const std::vector<std::string>& names,
          pb::ContractValidationResult* result)
      : component_(component), names_(names), result_(result) {}

  void Require(const std::string& term) const {
    if (Has(names_, term)) return;
    const std::string nearest = NearestName(term, names_);
    *result_->add_errors() = Problem(
        "error", component_, term,
        absl::StrCat("expected one of the task's ", names_.size(), " ",
                     component_, ", found ", Quoted(term)),
        nearest.empty() ? "GetCapabilityManifest has all names"
                        : absl::StrCat("did you mean '", nearest, "'?"));
  }

  void Warn(const std::string& term, const std::string& text) const {
    *result_->add_warnings() =
        Problem("warning", component_, term, text, "leave it out");
  }

 private:
  const absl::string_view component_;
  const std::vector<std::string>& names_;
  pb::ContractValidationResult* const result_;
};

void Describe(const std::string& name, absl::string_view category,
              pb::MdpComponentDescriptor* to) {
  to->set_name(name);
  to->set_category(std::string(category));
  to->add_output_shape(1);
}

}  // namespace

TaskTerms TermsOf(const pb::AgentSchema& schema, const StepNames& names) {
  TaskTerms terms = {
      .observations = Named(schema.observation_names(),
                            schema.observation_size(), "observation"),
      .actions = Named(schema.action_names(), schema.action_size(), "action"),
      .rewards = {},
      .terminations = {kTerminatedTerm, kTimeOutTerm}};
  if (names.has_reward) terms.rewards.emplace_back(kRewardTerm);
  for (const std::string& name : names.infos) {
    if (absl::StartsWith(name, kRewardPrefix)) terms.rewards.push_back(name);
  }
  return terms;
}

std::string NearestName(absl::string_view name,
                        const std::vector<std::string>& names) {
  std::string nearest;
  // More changes than half of the name: another name.
  size_t fewest = std::min(name.size(), kMostCompared) / 2 + 1;
  for (const std::string& each : names) {
    const size_t changes = Changes(name, each);
    if (changes >= fewest) continue;
    fewest = changes;
    nearest = each;
  }
  return nearest;
}

pb::ContractValidationResult Validate(const pb::TaskContract& contract,
                                      const TaskTerms& terms) {
  pb::ContractValidationResult result;
  const Checker observations("observations", terms.observations, &result);
  for (const auto& term : contract.observations().required()) {
    observations.Require(term.name());
  }
  for (const auto& term : contract.observations().optional()) {
    (Has(terms.observations, term.name()) ? result.add_resolved_optionals()
                                          : result.add_unresolved_optionals())
        ->assign(term.name());
  }
  const Checker rewards("rewards", terms.rewards, &result);
  for (const auto& term : contract.rewards().engine_terms()) {
    rewards.Require(term.name());
    if (term.weight() != 0 && term.weight() != 1) {
      rewards.Warn(term.name(),
                   "the weight has no effect: signals are not weighted");
    }
  }
  const Checker terminations("terminations", terms.terminations, &result);
  for (const auto& term : contract.terminations().terms()) {
    terminations.Require(term.name());
    if (term.params_size() > 0) {
      terminations.Warn(term.name(),
                        "the params have no effect: the task ends its episodes "
                        "by its own rules");
    }
  }
  const Checker actions("actions", terms.actions, &result);
  for (const auto& term : contract.actions().terms()) {
    actions.Warn(term.type(),
                 "action terms have no effect: actions are the task's own");
  }
  const std::vector<std::string> none;
  const Checker randomization("randomization", none, &result);
  for (const auto& custom : contract.randomization().custom_randomizations()) {
    randomization.Warn(custom.name(),
                       "custom randomisations have no effect: a contract of "
                       "ResetAgent has ranges");
  }
  const Checker auxiliary("auxiliary_data", none, &result);
  for (const auto& data : contract.auxiliary_data()) {
    auxiliary.Warn(data.name(), "auxiliary data has no effect");
  }
  result.set_is_valid(result.errors_size() == 0);
  *result.mutable_negotiated_contract() = contract;
  return result;
}

pb::NegotiatedTaskSession SessionOf(const pb::TaskContract& contract,
                                    const TaskTerms& terms) {
  pb::NegotiatedTaskSession session;
  *session.mutable_resolved_contract() = contract;
  for (size_t i = 0; i < terms.observations.size(); ++i) {
    pb::ObservationSlot* const slot = session.add_observation_layout();
    slot->set_name(terms.observations[i]);
    slot->set_offset(static_cast<int32_t>(i));
    slot->set_size(1);
  }
  for (const auto& term : contract.rewards().engine_terms()) {
    session.add_reward_terms(term.name());
  }
  if (session.reward_terms_size() == 0 && Has(terms.rewards, kRewardTerm)) {
    session.add_reward_terms(kRewardTerm);
  }
  for (const auto& term : contract.terminations().terms()) {
    session.add_termination_terms(term.name());
  }
  pb::ActionGroupSlot* const all = session.add_action_layout();
  for (size_t i = 0; i < terms.actions.size(); ++i) {
    all->add_action_names(terms.actions[i]);
    all->add_action_indices(static_cast<int32_t>(i));
  }
  return session;
}

pb::EngineCapabilityManifest ManifestOf(const TaskTerms& terms) {
  pb::EngineCapabilityManifest manifest;
  manifest.set_engine_version("Tandem");
  manifest.set_manifest_version(kManifestVersion);
  for (const std::string& name : terms.observations) {
    Describe(name, "observation", manifest.add_observations());
  }
  for (const std::string& name : terms.actions) {
    Describe(name, "action", manifest.add_actions());
  }
  for (const std::string& name : terms.rewards) {
    Describe(name, "reward", manifest.add_rewards());
  }
  for (const std::string& name : terms.terminations) {
    Describe(name, "termination", manifest.add_terminations());
  }
  return manifest;
}

}  // namespace tandem::gateway
