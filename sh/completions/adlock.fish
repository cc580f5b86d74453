# Completion of adlock(1) for fish.
#
# It offers verbs, options and their values, the names of atoms from the lock directory,
# and behind adlock run what the command's own completion offers. It starts no program
# and writes nothing.

# Prints where the cursor is: verb; or VERB option, before the first argument; or VERB and the
# number of the word, counted behind adlock, that is the first argument.
function __adlock_place
    set -l words (commandline -opc)
    set -e words[1]
    if not set -q words[1]
        echo verb
        return
    end
    set -l takes (__adlock_takes $words[1])
    set -l i 2
    while set -q words[$i]
        switch $words[$i]
            case --
                echo $words[1] (math $i + 1)
                return
            case '--*=*'
            case '-*'
                if contains -- $words[$i] $takes
                    set i (math $i + 1)
                else if test $words[$i] = -
                    break
                end
            case '*'
                break
        end
        set i (math $i + 1)
    end
    if set -q words[$i]
        echo $words[1] $i
    else
        echo $words[1] option
    end
end

function __adlock_wants_option
    test "$(__adlock_place)" = "$argv[1] option"
end

# Prints the kind of the argument at the cursor; for a command also the number of its first
# word.
function __adlock_kind
    set -l place (__adlock_place | string split ' ')
    if not set -q place[2]
        echo $place
        return
    end
    set -l words (commandline -opc)
    set -e words[1]
    if test $place[2] = option
        not string match -q -- '-*' (commandline -ct); or return
        set place[2] (math (count $words) + 1)
    end
    set -l kind (__adlock_args $place[1])
    set -l behind (math (count $words) + 1 - $place[2])
    switch $kind
        case command
            echo command $place[2]
        case made
            switch $behind
                case 0
                    echo file
                case 1
                    echo dashes
                case '*'
                    echo command (math $place[2] + 2)
            end
        case process
            contains -- --lock $words; and echo file; or echo process
        case '*'
            echo $kind
    end
end

function __adlock_wants
    string match -q -- "$argv[1]*" (__adlock_kind)
end

# Offers what fish offers for the command that begins at the cursor or before it.
function __adlock_command
    set -l first (__adlock_kind | string split ' ')[2]
    set -l words (commandline -opc)
    set -e words[1]
    set -l line (string escape -- $words[$first..-1]) (commandline -ct)
    complete --do-complete="$(string join ' ' -- $line)"
end

function __adlock_stores
    if not string match -q '*:*' -- (commandline -ct)
        __fish_complete_directories (commandline -ct)
    end
    printf '%s\n' etcd:// ftp:// ftps://
end

# Prints the operands of the atoms in the lock directory, else their NAMEs: of all
# atoms, of those that are held, or of those that adlock run --name names. It reads
# only regular files whose name does not give the operand.
function __adlock_names
    set -l dir $ADLOCK_STORE
    if test -z "$dir"; or string match -q '*://*' -- $dir
        set dir $ADLOCK_DIR
    end
    if test -z "$dir"
        if fish_is_root_user
            set dir /var/lib/adlock
        else if test -O /var/lib/adlock-(id -u)
            set dir /var/lib/adlock-(id -u)
        else
            set dir $HOME/.local/state/adlock
        end
    end
    set -l pattern '/l...(\.[^.]*){4}$'
    switch $argv[1]
        case name
            set pattern '/l...\.adlock\.[^.]*\.run\.[^.]*$'
        case held
            set pattern '/lock(\.[^.]*){4}$'
    end
    set -l files $dir/last.* $dir/lock.*
    set files (string match -er -- $pattern $files)
    set -l operands (string replace -rf '.*\.([^.-]*)$' '$1' -- $files)
    string match -- '_*' $operands | string replace -a _ /
    string match -v -- '_*' $operands | string replace -a _ .
    for file in (string match -er -- '\.[^./]*-[^./]*$' $files)
        test -f $file -a -r $file; or continue
        string replace -rf '^operand="([^\\\\]*)"$' '$1' <$file
        or string replace -r '.*/l...\.' '' -- $file
    end
    if string match -q '*.*' -- (commandline -ct)
        string replace -r '.*/l...\.' '' -- $files
    end
end

complete -c adlock -f
complete -c adlock -n '__adlock_wants verb' -l help -s h -d 'list the verbs'
complete -c adlock -n '__adlock_wants verb' -l version -s v -d 'tell which version this is'
complete -c adlock -n '__adlock_wants file' -F
complete -c adlock -n '__adlock_wants atom' -a '(__adlock_names atom)'
complete -c adlock -n '__adlock_wants held' -a '(__adlock_names held)'
complete -c adlock -n '__adlock_wants process' -a '(__fish_complete_pids)'
complete -c adlock -n '__adlock_wants dashes' -a --
complete -c adlock -n '__adlock_wants command' -a '(__adlock_command)'
complete -c adlock -n '__adlock_wants verb' -a '(__adlock_verbs)'

# From here on made by go test ./test/cli -run TheCompletions -update.
complete -c adlock -n '__adlock_wants_option run' -l name -x -a '(__adlock_names name)' -d 'the lock\'s name, whatever the command and the directory: program adlock, operator run, operand NAME'
complete -c adlock -n '__adlock_wants_option run' -l program -x -d 'the program'
complete -c adlock -n '__adlock_wants_option run' -l host -x -d 'the host'
complete -c adlock -n '__adlock_wants_option run' -l operator -x -d 'the operator'
complete -c adlock -n '__adlock_wants_option run' -l operand -x -d 'the operand alone'
complete -c adlock -n '__adlock_wants_option run' -l exit-denied -s E -x -d 'exit with N when denied'
complete -c adlock -n '__adlock_wants_option run' -l replace -d 'end a running job at once and take its place: ExpireAfter 0'
complete -c adlock -n '__adlock_wants_option run' -l enforce -d 'end the job at ExpireAfter without waiting for a newcomer (exit 124)'
complete -c adlock -n '__adlock_wants_option run' -l whole-job -d 'hold the atom until every process that COMMAND started is gone, daemons too (Linux)'
complete -c adlock -n '__adlock_wants_option run' -l quiet-ok -d 'show the job\'s output only if it fails'
complete -c adlock -n '__adlock_wants_option run' -l retry-failed -d 'a failed run does not count for IfElapsed'
complete -c adlock -n '__adlock_wants_option run' -l once-per -x -d 'run once in each tick of D, counted by the host\'s clock: for one crontab on many hosts'
complete -c adlock -n '__adlock_wants_option run' -l jitter -x -d 'first wait a random time up to D'
complete -c adlock -n '__adlock_wants_option run' -l dry-run -d 'say the verdict and why; touch nothing'
complete -c adlock -n '__adlock_wants_option run' -l store -x -a '(__adlock_stores)' -d 'where the locks are: a directory, etcd://HOST:PORT/PREFIX or ftp://USER@HOST/DIR'
complete -c adlock -n '__adlock_wants_option run' -l flock -r -F -d 'beside the atom hold flock(2) on FILE, as flock(1) does, with --shared a shared one: for other users, and programs that lock FILE'
complete -c adlock -n '__adlock_wants_option run' -l if-elapsed -x -d 'do not run sooner than D after the last completion; auto: learn it'
complete -c adlock -n '__adlock_wants_option run' -l expire-after -x -d 'end a job that has run for D and take its place; 0: end a running job at once; auto: learn the limit'
complete -c adlock -n '__adlock_wants_option run' -l notice -x -d 'report a job that has run for D (by default only one that no limit ends); never: none'
complete -c adlock -n '__adlock_wants_option run' -l pause -x -d 'wait for D between the signals INT, TERM and KILL'
complete -c adlock -n '__adlock_wants_option run' -l wait -x -d 'wait at most D for a busy or full atom; forever: without end'
complete -c adlock -n '__adlock_wants_option run' -l wait-elapsed -d 'wait for IfElapsed too, within the time of --wait'
complete -c adlock -n '__adlock_wants_option run' -l slots -x -d 'at most N atoms of the program at once; with --name alone, at most N runs of that name; 0: off'
complete -c adlock -n '__adlock_wants_option run' -l shared -d 'hold the atom together with other shared runs: many readers or one writer'
complete -c adlock -n '__adlock_wants_option run' -l from-start -d 'IfElapsed, less a tenth (1s to 30s), counts from the start of the last run'
complete -c adlock -n '__adlock_wants_option run' -l starving -x -d 'report when denied as full N, 10N, 100N times in a row; 0: never'
complete -c adlock -n '__adlock_wants_option run' -l now -x -d 'the clock of the whole pass, in seconds since the epoch'
complete -c adlock -n '__adlock_wants_option run' -l verbose -d 'say which lock was denied, and why'
complete -c adlock -n '__adlock_wants_option run' -l hook -x -a '(__fish_complete_command)' -d 'start COMMAND (by sh -c) when a job was ended by force or failed, is stuck or overdue, starves, or its lock was lost'
complete -c adlock -n '__adlock_wants_option run' -l hook-runs -d 'start the hook also at the start and the success of each run'
complete -c adlock -n '__adlock_wants_option run' -l syslog -d 'write failed runs, and what is told of trouble, to the system\'s log too'
complete -c adlock -n '__adlock_wants_option run' -l help -s h -d 'list the options'
complete -c adlock -n '__adlock_wants_option shell' -l help -s h -d 'list the options'
complete -c adlock -n '__adlock_wants_option hold' -l program -x -d 'the program'
complete -c adlock -n '__adlock_wants_option hold' -l host -x -d 'the host'
complete -c adlock -n '__adlock_wants_option hold' -l operator -x -d 'the operator'
complete -c adlock -n '__adlock_wants_option hold' -l retry-failed -d 'a failed run does not count for IfElapsed'
complete -c adlock -n '__adlock_wants_option hold' -l store -x -a '(__adlock_stores)' -d 'where the locks are: a directory, etcd://HOST:PORT/PREFIX or ftp://USER@HOST/DIR'
complete -c adlock -n '__adlock_wants_option hold' -l owner -x -a '(__fish_complete_pids)' -d 'the process that owns the lock: the one that asks, or an ancestor of it'
complete -c adlock -n '__adlock_wants_option hold' -l if-elapsed -x -d 'do not run sooner than D after the last completion; auto: learn it'
complete -c adlock -n '__adlock_wants_option hold' -l expire-after -x -d 'end a job that has run for D and take its place; 0: end a running job at once; auto: learn the limit'
complete -c adlock -n '__adlock_wants_option hold' -l notice -x -d 'report a job that has run for D (by default only one that no limit ends); never: none'
complete -c adlock -n '__adlock_wants_option hold' -l pause -x -d 'wait for D between the signals INT, TERM and KILL'
complete -c adlock -n '__adlock_wants_option hold' -l wait -x -d 'wait at most D for a busy or full atom; forever: without end'
complete -c adlock -n '__adlock_wants_option hold' -l wait-elapsed -d 'wait for IfElapsed too, within the time of --wait'
complete -c adlock -n '__adlock_wants_option hold' -l slots -x -d 'at most N atoms of the program at once; with --name alone, at most N runs of that name; 0: off'
complete -c adlock -n '__adlock_wants_option hold' -l shared -d 'hold the atom together with other shared runs: many readers or one writer'
complete -c adlock -n '__adlock_wants_option hold' -l from-start -d 'IfElapsed, less a tenth (1s to 30s), counts from the start of the last run'
complete -c adlock -n '__adlock_wants_option hold' -l starving -x -d 'report when denied as full N, 10N, 100N times in a row; 0: never'
complete -c adlock -n '__adlock_wants_option hold' -l now -x -d 'the clock of the whole pass, in seconds since the epoch'
complete -c adlock -n '__adlock_wants_option hold' -l verbose -d 'say which lock was denied, and why'
complete -c adlock -n '__adlock_wants_option hold' -l hook -x -a '(__fish_complete_command)' -d 'start COMMAND (by sh -c) when a job was ended by force or failed, is stuck or overdue, starves, or its lock was lost'
complete -c adlock -n '__adlock_wants_option hold' -l hook-runs -d 'start the hook also at the start and the success of each run'
complete -c adlock -n '__adlock_wants_option hold' -l syslog -d 'write failed runs, and what is told of trouble, to the system\'s log too'
complete -c adlock -n '__adlock_wants_option hold' -l help -s h -d 'list the options'
complete -c adlock -n '__adlock_wants_option status' -l atom -x -a '(__adlock_names atom)' -d 'only atoms with TEXT in "program operator operand", or with this NAME'
complete -c adlock -n '__adlock_wants_option status' -l store -x -a '(__adlock_stores)' -d 'where the locks are: a directory, etcd://HOST:PORT/PREFIX or ftp://USER@HOST/DIR'
complete -c adlock -n '__adlock_wants_option status' -l all-users -d 'of all users of this machine, each read with that user\'s rights; for root'
complete -c adlock -n '__adlock_wants_option status' -l json -d 'as JSON, one array a line; durations are seconds'
complete -c adlock -n '__adlock_wants_option status' -l failed -d 'only atoms whose last run failed or was ended by force, or that are in trouble; nothing is printed where there is none'
complete -c adlock -n '__adlock_wants_option status' -l exit-code -d 'exit with 1 if there is a row to show, else with 0: with --failed for Nagios, say'
complete -c adlock -n '__adlock_wants_option status' -l watch -d 'show it again every 2 seconds'
complete -c adlock -n '__adlock_wants_option status' -l help -s h -d 'list the options'
complete -c adlock -n '__adlock_wants_option log' -l since -x -a 'today yesterday now' -d 'the first moment: 7d, 16:00, today, "yesterday 16:00" or "2026-11-20 16:00"; 16:00 is the latest one'
complete -c adlock -n '__adlock_wants_option log' -l until -x -a 'today yesterday now' -d 'the last moment, in the forms of --since'
complete -c adlock -n '__adlock_wants_option log' -l atom -x -a '(__adlock_names atom)' -d 'only atoms with TEXT in "program operator operand", or with this NAME'
complete -c adlock -n '__adlock_wants_option log' -l all-users -d 'of all users of this machine, each read with that user\'s rights; for root'
complete -c adlock -n '__adlock_wants_option log' -l event -x -a '(__fish_append , $__adlock_events)' -d 'only events of these kinds: acquire, deny, release, expire, signal, takeover, reclaim, stuck, lost, clock, clear, stop, empty, hook, starved, overdue, pause, resume, paused, missing, wait, cancel, not-run'
complete -c adlock -n '__adlock_wants_option log' -l lines -s n -x -d 'only the last N events of these'
complete -c adlock -n '__adlock_wants_option log' -l follow -s f -d 'go on with what is added'
complete -c adlock -n '__adlock_wants_option log' -l json -d 'as JSON, one object a line; durations are seconds'
complete -c adlock -n '__adlock_wants_option log' -l help -s h -d 'list the options'
complete -c adlock -n '__adlock_wants_option report' -l since -x -a 'today yesterday now' -d 'the first moment: 7d, 16:00, today, "yesterday 16:00" or "2026-11-20 16:00"; 16:00 is the latest one'
complete -c adlock -n '__adlock_wants_option report' -l atom -x -a '(__adlock_names atom)' -d 'only atoms with TEXT in "program operator operand", or with this NAME'
complete -c adlock -n '__adlock_wants_option report' -l all-users -d 'of all users of this machine, each read with that user\'s rights; for root'
complete -c adlock -n '__adlock_wants_option report' -l json -d 'as one JSON object; durations are seconds'
complete -c adlock -n '__adlock_wants_option report' -l csv -d 'as CSV with a header; durations are seconds'
complete -c adlock -n '__adlock_wants_option report' -l html -r -F -d 'write one page with pictures for a browser instead (-: to standard output)'
complete -c adlock -n '__adlock_wants_option report' -l help -s h -d 'list the options'
complete -c adlock -n '__adlock_wants_option timeline' -l since -x -a 'today yesterday now' -d 'the first moment: 7d, 16:00, today, "yesterday 16:00" or "2026-11-20 16:00"; 16:00 is the latest one'
complete -c adlock -n '__adlock_wants_option timeline' -l until -x -a 'today yesterday now' -d 'the last moment, in the forms of --since'
complete -c adlock -n '__adlock_wants_option timeline' -l atom -x -a '(__adlock_names atom)' -d 'only atoms with TEXT in "program operator operand", or with this NAME'
complete -c adlock -n '__adlock_wants_option timeline' -l svg -r -F -d 'write an SVG picture instead (-: to standard output)'
complete -c adlock -n '__adlock_wants_option timeline' -l help -s h -d 'list the options'
complete -c adlock -n '__adlock_wants_option metrics' -l output -s o -r -F -d 'replace this file as a whole; its counters go on from what it had'
complete -c adlock -n '__adlock_wants_option metrics' -l atom -x -a '(__adlock_names atom)' -d 'only atoms with TEXT in "program operator operand", or with this NAME'
complete -c adlock -n '__adlock_wants_option metrics' -l all-users -d 'of all users of this machine, each read with that user\'s rights; for root'
complete -c adlock -n '__adlock_wants_option metrics' -l help -s h -d 'list the options'
complete -c adlock -n '__adlock_wants_option tune' -l atom -x -a '(__adlock_names atom)' -d 'only atoms with TEXT in "program operator operand", or with this NAME'
complete -c adlock -n '__adlock_wants_option tune' -l store -x -a '(__adlock_stores)' -d 'where the locks are: a directory, etcd://HOST:PORT/PREFIX or ftp://USER@HOST/DIR'
complete -c adlock -n '__adlock_wants_option tune' -l explain -d 'with the arithmetic'
complete -c adlock -n '__adlock_wants_option tune' -l json -d 'as JSON, one array; durations are seconds'
complete -c adlock -n '__adlock_wants_option tune' -l reset -x -a '(__adlock_names atom)' -d 'forget what the atom with exactly this name has learned'
complete -c adlock -n '__adlock_wants_option tune' -l help -s h -d 'list the options'
complete -c adlock -n '__adlock_wants_option check' -l system -d 'check the crontabs of this machine: /etc/crontab, /etc/cron.d and, as root, those of all users'
complete -c adlock -n '__adlock_wants_option check' -l json -d 'as JSON, one array'
complete -c adlock -n '__adlock_wants_option check' -l user-column -s u -d 'crontabs have a user column, as /etc/crontab has (else that is seen)'
complete -c adlock -n '__adlock_wants_option check' -l help -s h -d 'list the options'
complete -c adlock -n '__adlock_wants_option wrap' -l user-column -s u -d 'the crontab names a user before the command, as /etc/crontab does'
complete -c adlock -n '__adlock_wants_option wrap' -l expire-after -x -d 'give each job this limit: a time, auto, or from-schedule (half as long again as from one start to the next, 15m at least)'
complete -c adlock -n '__adlock_wants_option wrap' -l flock -d 'put lines under flock(1) under adlock run --flock too, so that they and what still uses their files exclude each other as before'
complete -c adlock -n '__adlock_wants_option wrap' -l shell -d 'put a line SHELL= of adlock\'s above the jobs instead, and leave them as they are; a SHELL of the crontab becomes ADLOCK_SHELL'
complete -c adlock -n '__adlock_wants_option wrap' -l diff -d 'show what would change, as a unified diff'
complete -c adlock -n '__adlock_wants_option wrap' -l unwrap -d 'take out what wrap put in; what was written or edited by hand stays'
complete -c adlock -n '__adlock_wants_option wrap' -l help -s h -d 'list the options'
complete -c adlock -n '__adlock_wants_option init' -l help -s h -d 'list the options'
complete -c adlock -n '__adlock_wants_option pause' -l all -d 'as root: all newcomers of this host; else all atoms that this user has now'
complete -c adlock -n '__adlock_wants_option pause' -l for -x -d 'how long the pause lasts; never: until adlock resume'
complete -c adlock -n '__adlock_wants_option pause' -l why -x -a '(__adlock_names atom)' -d 'the reason that a denied newcomer prints'
complete -c adlock -n '__adlock_wants_option pause' -l json -d 'print the pauses as JSON, one array; durations are seconds'
complete -c adlock -n '__adlock_wants_option pause' -l help -s h -d 'list the options'
complete -c adlock -n '__adlock_wants_option resume' -l all -d 'as root: all newcomers of this host; else all atoms that this user has now'
complete -c adlock -n '__adlock_wants_option resume' -l help -s h -d 'list the options'
complete -c adlock -n '__adlock_wants_option config' -l json -d 'as JSON, one array'
complete -c adlock -n '__adlock_wants_option config' -l check -r -F -d 'print the mistakes in FILE, which is to become a settings file'
complete -c adlock -n '__adlock_wants_option config' -l help -s h -d 'list the options'
complete -c adlock -n '__adlock_wants_option doctor' -l json -d 'as JSON, one array'
complete -c adlock -n '__adlock_wants_option doctor' -l help -s h -d 'list the options'
complete -c adlock -n '__adlock_wants_option stop' -l pause -x -d 'wait for D between the signals INT, TERM and KILL'
complete -c adlock -n '__adlock_wants_option stop' -l dry-run -d 'list what would be signalled'
complete -c adlock -n '__adlock_wants_option stop' -l store -x -a '(__adlock_stores)' -d 'where the locks are: a directory, etcd://HOST:PORT/PREFIX or ftp://USER@HOST/DIR'
complete -c adlock -n '__adlock_wants_option stop' -l hook -x -a '(__fish_complete_command)' -d 'start COMMAND (by sh -c) when a job was ended by force or failed, is stuck or overdue, starves, or its lock was lost'
complete -c adlock -n '__adlock_wants_option stop' -l hook-runs -d 'start the hook also at the start and the success of each run'
complete -c adlock -n '__adlock_wants_option stop' -l syslog -d 'write failed runs, and what is told of trouble, to the system\'s log too'
complete -c adlock -n '__adlock_wants_option stop' -l help -s h -d 'list the options'
complete -c adlock -n '__adlock_wants_option clear' -l last -d 'prune last locks instead, and print their names'
complete -c adlock -n '__adlock_wants_option clear' -l older -x -d 'those not used for D'
complete -c adlock -n '__adlock_wants_option clear' -l store -x -a '(__adlock_stores)' -d 'where the locks are: a directory, etcd://HOST:PORT/PREFIX or ftp://USER@HOST/DIR'
complete -c adlock -n '__adlock_wants_option clear' -l help -s h -d 'list the options'
complete -c adlock -n '__adlock_wants_option stat-age' -l at-least -x -d 'print nothing; exit 0 if every FILE is at least D old, else 1'
complete -c adlock -n '__adlock_wants_option stat-age' -l now -x -d 'the time at which the ages are measured, in seconds since the epoch'
complete -c adlock -n '__adlock_wants_option stat-age' -l help -s h -d 'list the options'
complete -c adlock -n '__adlock_wants_option mkatomic' -l replace -d 'also where there is a FILE already (else: exit 75), keeping its mode, and its owner where permitted; a link stays, and what it leads to is replaced'
complete -c adlock -n '__adlock_wants_option mkatomic' -l help -s h -d 'list the options'
complete -c adlock -n '__adlock_wants_option kill-carefully' -l pause -x -d 'wait for D between the signals INT, TERM and KILL'
complete -c adlock -n '__adlock_wants_option kill-carefully' -l dry-run -d 'list what would be signalled'
complete -c adlock -n '__adlock_wants_option kill-carefully' -l lock -d 'end the owner of the lock FILE; the next newcomer takes its place'
complete -c adlock -n '__adlock_wants_option kill-carefully' -l help -s h -d 'list the options'
complete -c adlock -n '__adlock_wants_option release' -l token -x -d 'only the acquisition with this token'
complete -c adlock -n '__adlock_wants_option release' -l status -x -d 'the job\'s exit status, for the runlog'
complete -c adlock -n '__adlock_wants_option release' -l retry-failed -d 'a status other than 0 does not count for IfElapsed'
complete -c adlock -n '__adlock_wants_option release' -l pause -x -d 'a newcomer that is changing the lock is waited for, four times as long at most'
complete -c adlock -n '__adlock_wants_option release' -l hook -x -a '(__fish_complete_command)' -d 'start COMMAND (by sh -c) when a job was ended by force or failed, is stuck or overdue, starves, or its lock was lost'
complete -c adlock -n '__adlock_wants_option release' -l hook-runs -d 'start the hook also at the start and the success of each run'
complete -c adlock -n '__adlock_wants_option release' -l syslog -d 'write failed runs, and what is told of trouble, to the system\'s log too'
complete -c adlock -n '__adlock_wants_option release' -l help -s h -d 'list the options'

set -g __adlock_events acquire deny release expire signal takeover reclaim stuck lost clock clear stop empty hook starved overdue pause resume paused missing wait cancel not-run

function __adlock_verbs
    printf '%s\t%s\n' \
        run 'take the lock, run COMMAND, release the lock' \
        shell 'run a line of a crontab under its own lock, as its SHELL' \
        hold 'take a lock for the calling program, and hold it until the program says release' \
        status 'list every atom of the lock directory or the store, or those that are called so' \
        log 'show the runlog: what was taken, denied, released and ended' \
        report 'tell how the atoms fared over a period, and what to mend' \
        timeline 'draw when each atom ran, was denied and was ended' \
        metrics 'tell Prometheus of each atom: for node_exporter\'s textfile collector' \
        tune 'tell what atoms have learned (limits that are auto), and what that would decide' \
        check 'look for the usual mistakes with locks in crontabs' \
        wrap 'put the jobs of a crontab (FILE, or standard input) under adlock run' \
        init 'make a lock directory for each USER who can have none at home (www-data, say): as root' \
        pause 'deny newcomers these atoms, or all as root, until then; what runs goes on' \
        resume 'end a pause' \
        config 'show the settings that count, for NAME or in general, and where each is from' \
        doctor 'tell whether this machine is fit to keep locks' \
        stop 'end the running job of an atom carefully: CONT INT TERM KILL' \
        clear 'force-remove a stale lock' \
        stat-age 'print the ages of files in whole seconds' \
        mkatomic 'make FILE of standard input, or of what COMMAND prints if it succeeds: whole or not at all, and durable' \
        kill-carefully 'end processes with all that they started: CONT INT TERM KILL' \
        release 'stamp the last lock and remove the active lock FILE' \
        help 'list the verbs, or the options of one' \
        version 'tell which version this is'
end

function __adlock_takes
    switch $argv[1]
        case run
            printf '%s\n' --name --program --host --operator --operand --exit-denied -E --once-per --jitter --store --flock --if-elapsed --expire-after --notice --pause --wait --slots --starving --now --hook
        case hold
            printf '%s\n' --program --host --operator --store --owner --if-elapsed --expire-after --notice --pause --wait --slots --starving --now --hook
        case status
            printf '%s\n' --atom --store
        case log
            printf '%s\n' --since --until --atom --event --lines -n
        case report
            printf '%s\n' --since --atom --html
        case timeline
            printf '%s\n' --since --until --atom --svg
        case metrics
            printf '%s\n' --output -o --atom
        case tune
            printf '%s\n' --atom --store --reset
        case wrap
            printf '%s\n' --expire-after
        case pause
            printf '%s\n' --for --why
        case config
            printf '%s\n' --check
        case stop
            printf '%s\n' --pause --store --hook
        case clear
            printf '%s\n' --older --store
        case stat-age
            printf '%s\n' --at-least --now
        case kill-carefully
            printf '%s\n' --pause
        case release
            printf '%s\n' --token --status --pause --hook
    end
end

function __adlock_args
    switch $argv[1]
        case run
            echo command
        case hold
            echo name
        case status
            echo atom
        case log
            echo atom
        case report
            echo atom
        case timeline
            echo atom
        case metrics
            echo atom
        case tune
            echo atom
        case check
            echo file
        case wrap
            echo file
        case pause
            echo atom
        case resume
            echo atom
        case config
            echo atom
        case stop
            echo held
        case clear
            echo held
        case stat-age
            echo file
        case mkatomic
            echo made
        case kill-carefully
            echo process
        case release
            echo file
        case help
            echo verb
    end
end
# Up to here.
