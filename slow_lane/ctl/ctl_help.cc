#include "slow_lane/ctl/ctl_help.h"

namespace tandem::slow_lane {

const char kCtlHelp[] =
    R"(Usage: tandemctl [--daemon ADDRESS] [--token_file FILE] COMMAND ...

Submits training runs to a tandem-daemon, and says how they are.

  submit   starts a run: tandemctl submit -- python train.py
  list     a table of the runs
  watch    the same, live; of one run also its last episodes
  cancel   ends runs with all their processes
  pause    stops all processes of runs where they are
  resume   lets them go on
  delete   removes runs that have ended, with all their events
  logs     what a run's worker wrote, or which of its lines are no events
  export   a run's events as CSV
  health   how the daemon is

  --daemon ADDRESS  HOST:PORT, or unix:PATH (DATA_DIR/daemon.sock); without it
                    TANDEM_DAEMON, without that 127.0.0.1:50055
  --token_file FILE a copy of the daemon's --token_file, where it asks for one;
                    without it TANDEM_TOKEN_FILE, without that none
  --help            behind a command: more about it

Exit codes: 0 done, 1 failed, 2 wrong command line, 3 the run that was watched
has failed, or the daemon is not healthy.
)";

const char kSubmitHelp[] =
    R"(Usage: tandemctl submit [flags] -- PROGRAM [ARG]...
       tandemctl submit [--watch] --config FILE

Starts a run, and prints its run_id, alone, on standard output. Its worker is
PROGRAM, found by your PATH and started in the current folder, with the daemon's
environment. Each line that it prints and that begins with '{' is an event.

  --name NAME          for people; default: the program and its arguments
  --gpus N             waits until N GPUs are free; they are the only ones that
                       the worker sees; default 0
  --env NAME=VALUE     for the worker, on top of the daemon's; may be repeated
  --max_steps N        ends the run when so many steps were printed, kept or not
  --max_duration 90m   ends it so long after its start; h, m, s
  --step_stride N      keeps each Nth step only, beginning with the first
  --watch              goes on as `tandemctl watch RUN_ID`
  --config FILE        all of it, as JSON (MOSAIC's TrainRunConfig); -: standard
                       input
  --daemon ADDRESS     see tandemctl --help

Example: run_id=$(tandemctl submit --max_duration 2h -- python train.py --seed 3)
)";

const char kListHelp[] =
    R"(Usage: tandemctl list [--state STATE,...] [--json] [--daemon ADDRESS]

One line for each run, in the order of their submission. BAD counts the lines
that were meant as events and are none: `tandemctl logs RUN_ID --malformed` has
them. REMARK says what is wrong, or what is waited for.

  --state  only those: initialized, handshake, ready, executing, paused,
           terminated, faulted
  --json   an object; its "runs" have run_id, name, state, created_at, steps, ...

Example: tandemctl list --json | jq -r '.runs[] | select(.malformed > 0).run_id'
)";

const char kWatchHelp[] =
    R"(Usage: tandemctl watch [RUN_ID] [--daemon ADDRESS]

The table of `tandemctl list`, drawn anew each second, those that go on first;
of one run also its last episodes. Where standard output is no terminal, or TERM
is dumb or not set, a line a second for each run that goes on. While there is no
daemon it waits for it.

Ends with Ctrl-C (exit code 0); with a RUN_ID also when the run ends, with exit
code 0 if it is TERMINATED, 3 if it is FAULTED, and 1 if the daemon has forgotten
it before that was seen (--keep_runs, or tandemctl delete).
)";

const char kCancelHelp[] =
    R"(Usage: tandemctl cancel RUN_ID... [--daemon ADDRESS]
       tandemctl cancel --all [--daemon ADDRESS]

Ends runs: SIGTERM to all their processes, SIGKILL to those that are alive after
the daemon's --kill_grace, 5 s. When it returns, none is left, and the events
that they printed are kept. A run that has ended already is fine.

It waits a minute for that. A daemon whose --kill_grace is above 30 s may take
longer: the runs are ended all the same.

  --all  every run that has not ended
)";

const char kPauseHelp[] =
    R"(Usage: tandemctl pause RUN_ID... [--daemon ADDRESS]

Stops all processes of runs that are EXECUTING, by SIGSTOP; what they hold, such
as memory and GPUs, they keep. `tandemctl resume` lets them go on.
)";

const char kResumeHelp[] =
    R"(Usage: tandemctl resume RUN_ID... [--daemon ADDRESS]

Lets runs that are PAUSED go on.
)";

const char kDeleteHelp[] =
    R"(Usage: tandemctl delete RUN_ID... [--daemon ADDRESS]

Removes runs that have ended: all their events, and their folders. There is no
way back; `tandemctl export` before it keeps what matters.
)";

const char kLogsHelp[] =
    R"(Usage: tandemctl logs RUN_ID [--stderr | --malformed] [--follow]
                  [--daemon ADDRESS]

What the run's worker wrote to its standard output, as it is: events and other
lines. The files are read where they are, so this works on the daemon's machine.

  --stderr     what it wrote to its standard error instead
  --malformed  its lines that were meant as events and are none: number, offset
               in the output, length, what is wrong, and how it begins
  --follow     waits for more, until the run ends
)";

const char kExportHelp[] =
    R"(Usage: tandemctl export RUN_ID [--steps | --episodes | --lifecycle]
                  [--out FILE] [--daemon ADDRESS]

The run's events that are durable now, as CSV: a line of names, then one for
each event, in their order. Quoting is RFC 4180's, lines end with a newline,
numbers are exact (17 digits), times are UTC.

  --steps      the steps; the default
  --episodes   the episodes
  --lifecycle  the other events, such as run_started
  --out FILE   there, whole or not at all, and where it is a link, in the file
               that it leads to; default: standard output
)";

const char kHealthHelp[] =
    R"(Usage: tandemctl health [--daemon ADDRESS]

Where the daemon is, since when, and whether it keeps events in time: with a
full disk it cannot. "queued" are the events that are not in the table yet.
Exit codes: 0 all is well, 1 no daemon, 3 something is wrong.
)";

}  // namespace tandem::slow_lane
