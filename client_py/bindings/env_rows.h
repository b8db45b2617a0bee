// EnvRows: executes exchanges on the environments of one worker process.
//
// Data flow: actions and reset flags of this worker's rows -> env.step and
// env.reset, one environment after the other -> the rows of observations,
// rewards, flags and infos.
// Ownership: the worker process has one, and keeps the arrays' memory mapped.
// Run needs the GIL, and calls environments with it. It knows no protocol: the
// caller decides when the rows belong to it, and publishes the results.

#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "client_py/bindings/info_writer.h"
#include "client_py/bindings/row_values.h"
#include "schema/layout/lrbc.h"

namespace tandem {

// The value of `current` while no environment is in work.
inline constexpr uint32_t kNoEnvironment = 0xffffffff;

class EnvRows {
 public:
  struct Options {
    pybind11::sequence envs;  // gymnasium.Env, one for each row
    // tandem.workers.row_arrays.RowArrays, the results' arrays.
    pybind11::object arrays;
    // Of tandem.spaces.batches.
    pybind11::object observations;
    pybind11::object final_observations;
    pybind11::object actions;
    pybind11::array info_area;  // uint8[bytes], aligned to kInfoAlign
    // uint32[1]: the number of the environment in work, for an observer in
    // another process; kNoEnvironment between two calls of Run.
    pybind11::array current;
    // The class of exceptions that stop the worker, such as those that its
    // signal handler raises.
    pybind11::object stop;
    // What makes the text of a failure, such as the function `failure` of
    // tandem.workers.env_failures.
    pybind11::object failure;
    // None, or what makes the infos of an episode that an exception of `step`
    // truncates, with the arguments of `failure`.
    pybind11::object truncation;
    uint32_t first_env;  // the number of row 0's environment
    // Whether an earlier worker process had these rows, and died: its episodes
    // are over.
    bool restarted = false;
  };

  // Raises InvalidArgument if an array does not fit the rows.
  explicit EnvRows(const Options& options);
  EnvRows(const EnvRows&) = delete;
  EnvRows& operator=(const EnvRows&) = delete;

  // Executes an exchange on all rows. `options` is what env.reset gets for a
  // row whose reset flag is set. Returns a list of (row, exception, text with
  // traceback), for the rows that failed:
  //
  // | row | Run |
  // |---|---|
  // | flag skip | does nothing, and leaves all values |
  // | flag reset | resets it: reward and flags 0, status ok |
  // | no flag, reset only | does nothing, but it has no infos |
  // | failed before | reports the first failure again |
  // | restarted, not reset yet | truncates the dead worker's episode: reward 0,
  //     status restarted, the observation as it was |
  // | NEXT_STEP, episode ended | resets it, ignores the action |
  // | else | steps it; SAME_STEP: resets it if the episode ended |
  // | Options::truncation, and step raised an Exception | truncates the
  //     episode: reward 0, status ok, the observation as it was |
  //
  // Another failure is any exception of the environment, also KeyboardInterrupt
  // and SystemExit, or a result that does not fit. The row then has status
  // raised, reward and flags 0, and an undefined observation. The flags in
  // `resets` are not changed. Raises an exception of `stop`, and what a signal
  // handler raises between two environments: the rows are then undefined. An
  // environment that catches BaseException hides `stop`, so the handler should
  // also set a flag. Raises ConcurrentUse inside another call.
  pybind11::list Run(ExchangeKind kind, AutoresetMode mode,
                     const pybind11::object& options);

  // Returns a tuple of copies:
  //  - the number n of episodes that have ended in this process since
  //    ForgetEpisodes;
  //  - int64[min(n, kEpisodes)]: when the last of them ended, in nanoseconds of
  //    CLOCK_MONOTONIC, the oldest first;
  //  - float64, of the same length: their returns;
  //  - float64, of the same length: their numbers of steps;
  //  - float64[rows]: the return so far of each row's episode;
  //  - int64[rows]: its number, from 0; -1: not reset yet;
  //  - int64[rows]: its number of steps so far.
  pybind11::tuple Episodes() const;
  void ForgetEpisodes() { episodes_ = 0; }
  // For the `reset` of an environment that continues from a saved state: the
  // row's episode continues, too. One that had ended has done 1, and is
  // followed as after the step that ended it.
  void ContinueEpisode(uint32_t row, bool ended, double episode_return,
                       int64_t episode_length);
  static constexpr size_t kEpisodes = 100;

 private:
  struct Continued {
    bool ended;
    double episode_return;
    int64_t episode_length;
  };
  struct Row {
    pybind11::object env;
    // (row, exception, text), or null while the environment works.
    pybind11::object failure;
    bool ended = false;      // by the last step
    bool restarted = false;  // since its last reset
    // For the text of a failure: both count from 0; the step is -1 in a reset.
    int64_t episode = -1;
    int64_t step = -1;
    double episode_return = 0;
    int64_t episode_length = 0;
    std::optional<Continued> continued = {};  // in the reset that runs
  };
  // The rows of the results.
  struct Arrays {
    std::span<float> rewards;
    std::span<double> reward;
    std::span<uint8_t> terminateds;
    std::span<uint8_t> truncateds;
    std::span<uint8_t> dones;
    std::span<const uint8_t> resets;
    std::span<const uint64_t> reset_seeds;
    std::span<uint8_t> status;
    std::span<double> episode_return;
    std::span<int64_t> episode_length;
  };

  template <typename T>
  std::span<T> Column(const char* name, FieldType type) const;
  void Step(uint32_t row, bool resets_at_end);
  void ResetByFlag(uint32_t row, const pybind11::object& options);
  // Ends the episode without a step.
  void Truncate(uint32_t row, bool resets_at_end, const pybind11::dict& infos);
  // The text or infos of an exception, by a function of Options.
  pybind11::object Told(const pybind11::object& function, uint32_t row,
                        const pybind11::object& exception) const;
  // `arguments` has room for env at [1]; names of the others.
  void Reset(uint32_t row, PyObject** arguments, PyObject* names);
  void ClearResults(uint32_t row);
  void Fail(uint32_t row, const pybind11::object& exception);
  // Returns the items of what an environment returned, a tuple or list.
  pybind11::tuple Items(uint32_t row, pybind11::object result,
                        Py_ssize_t count) const;
  double Reward(uint32_t row, PyObject* value) const;
  bool Flag(uint32_t row, const char* name, PyObject* value) const;
  // Raises InvalidArgument, with the reason if a Python error is pending.
  [[noreturn]] void RaiseFound(uint32_t row, const char* what,
                               const char* expected, PyObject* found) const;
  void SetCurrent(uint32_t env);

  const Options options_;  // keeps the arrays alive
  const Arrays arrays_;
  std::vector<Row> rows_;
  RowValues observations_;
  RowValues final_observations_;
  RowValues actions_;
  InfoWriter infos_;
  uint32_t* const current_;
  const pybind11::str step_name_;
  const pybind11::str reset_name_;
  const pybind11::tuple reset_arguments_;  // ("seed", "options")
  const pybind11::dict restart_info_;
  struct Ended {
    int64_t at_ns = 0;
    double episode_return = 0;
    double episode_length = 0;
  };
  std::array<Ended, kEpisodes> ended_ = {};  // a ring
  uint64_t episodes_ = 0;
  bool busy_ = false;
};

}  // namespace tandem
