"""Output and input of workers, as a user on one machine sees them."""

import collections
import json
import os
import pathlib
import re
import select
import subprocess
import unittest

from job import JobTest, PATIENCE, SANITIZED, needs_root, read_terminal, wait_for

PYTHON = "/usr/bin/python3"
FLAGS = ("--log-level", "warn")  # Muster's own lines are not what is looked at.


class OutputTest(JobTest):
    def setUp(self):
        super().setUp()
        self.environment["PYTHON_EXEC"] = PYTHON

    def read_until(self, stream, wanted):
        """What comes from a pipe until these bytes are in it."""
        shown = b""
        while wanted not in shown:
            if not select.select([stream], [], [], PATIENCE)[0]:
                raise AssertionError(f"waited {PATIENCE} s for {wanted}; there is {shown}")
            part = os.read(stream.fileno(), 65536)
            if not part:
                raise AssertionError(f"the end came before {wanted}; there is {shown}")
            shown += part
        return shown


class InTime(OutputTest):
    """Fault kind 88: what a worker writes is seen before it writes more."""

    def test_each_line_and_each_prompt_is_seen_before_the_worker_goes_on(self):
        self.script("#!/bin/sh\nfor i in 1 2 3 4 5; do echo line $i; read -r go; printf 'name %s? ' $i; read -r go; "
                    "echo \"hello $go\"; done\n")
        job = self.start(*FLAGS, "--tee=3", "worker.sh", stdin=subprocess.PIPE)
        for number in range(1, 6):
            self.read_until(job.stdout, b"[default0]:line %d\n" % number)
            job.stdin.write("\n")
            job.stdin.flush()
            self.read_until(job.stdout, b"[default0]:name %d? " % number)
            job.stdin.write("you\n")
            job.stdin.flush()
            if number == 5:
                self.assertEqual(job.wait(PATIENCE), 0)
        self.assertEqual(job.stdout.read(), "hello you\n")

    def test_another_ranks_line_and_our_log_never_land_in_an_open_line(self):
        self.script("""#!/bin/sh
if [ $RANK = 0 ]; then
  printf 'half'
  while [ ! -e other ]; do sleep 0.01; done
  echo ' and half'
else
  while [ ! -e half ]; do sleep 0.01; done
  echo whole; touch other
fi
""")
        job = self.start(*FLAGS, "--nproc-per-node=2", "--tee=3", "worker.sh", stderr=subprocess.STDOUT)
        shown = self.read_until(job.stdout, b"half")
        (self.folder / "half").touch()
        self.assertEqual(job.wait(PATIENCE), 0)
        shown = shown.decode() + job.stdout.read()
        self.assertEqual(shown, "[default0]:half\n[default1]:whole\n[default0]: and half\n")

    def test_our_own_log_ends_an_open_line(self):
        self.script("#!/bin/sh\nprintf 'name? '\nread -r go\nexit 3\n")
        job = self.start("--tee=3", "worker.sh", stdin=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.read_until(job.stdout, b"[default0]:name? ")
        job.stdin.write("\n")
        job.stdin.flush()
        self.assertEqual(job.wait(PATIENCE), 3)
        self.assertRegex(job.stdout.read(), r"\A\nmuster \S+ warning worker failed")

    def test_of_a_progress_bar_each_state_is_drawn_over_the_last_and_files_have_all(self):
        self.script("#!/bin/sh\nprintf '1%%'; read -r go; printf '\\r2%%\\r3%%'; read -r go; printf '\\r4%%\\n'\n")
        job = self.start(*FLAGS, "--tee=1", "--log-dir=logs", "worker.sh", stdin=subprocess.PIPE)
        shown = self.read_until(job.stdout, b"1%")
        for state in (b"3%", None):
            job.stdin.write("\n")
            job.stdin.flush()
            shown += self.read_until(job.stdout, state) if state else b""
        self.assertEqual(job.wait(PATIENCE), 0)
        self.assertEqual((shown + job.stdout.buffer.read()).decode(), "[default0]:1%\r[default0]:3%\r[default0]:4%\n")
        (file,) = self.folder.glob("logs/*/attempt_0/0/stdout.log")
        self.assertEqual(file.read_bytes(), b"1%\r2%\r3%\r4%\n")

    def test_a_line_that_is_not_finished_when_its_worker_dies_is_ended(self):
        self.script("#!/bin/sh\nprintf 'the end of %s' $RANK\n")
        code, out, _ = self.run_job(*FLAGS, "--nproc-per-node=2", "--tee=1", "worker.sh")
        self.assertEqual((code, sorted(out.split("\n"))), (0, ["", "[default0]:the end of 0", "[default1]:the end of 1"]))


class Lines(OutputTest):
    def test_prefix_template_knows_torchruns_names_and_the_time(self):
        self.script("#!/bin/sh\necho hello\n")
        template = "${time} ${hostname}/$role_name/${rank}/$local_rank $other $$|"
        code, out, err = self.run_job(*FLAGS, "--role=trainer", "--tee=1", "--log-line-prefix-template", template, "worker.sh")
        self.assertEqual(code, 0, err)
        host = os.uname().nodename.split(".")[0]
        self.assertRegex(out, r"\A\d\d:\d\d:\d\d\.\d{3} " + re.escape(f"{host}/trainer/0/0 $other $|hello") + r"\n\Z")
        self.environment["TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE"] = "<$rank>"
        self.assertEqual(self.run_job(*FLAGS, "--tee=1", "worker.sh")[1], "<0>hello\n")

    def test_filters_by_local_and_by_global_rank(self):
        self.script("#!/bin/sh\necho $RANK\n")
        for flags, shown in ((["--local-ranks-filter=0,2-3"], "023"), (["--ranks-filter=1-9"], "123"),
                             (["--ranks-filter=1-9", "--local-ranks-filter=0-1"], "1")):
            for tee in ([], ["--tee=3", "--log-line-prefix-template=$$"]):
                code, out, _ = self.run_job(*FLAGS, "--nproc-per-node=4", *flags, *tee, "worker.sh")
                self.assertEqual((code, "".join(sorted(out.replace("$", "").split()))), (0, shown), flags + tee)

    def test_copies_of_lines_with_a_text_go_into_a_file_of_the_attempt(self):
        self.script("#!/bin/sh\necho loss $RANK; echo other $RANK; printf 'my loss'; echo 'Error: a,b' >&2; echo b >&2\n")
        code, _, err = self.run_job(*FLAGS, "--nproc-per-node=2", "--tee=0:3,1:3", "--log-dir=logs",
                                    "--duplicate-stdout-filters=loss,none", "--duplicate-stderr-filters=a,,b", "worker.sh")
        self.assertEqual(code, 0, err)
        (out,) = self.folder.glob("logs/*/attempt_0/filtered_stdout.log")
        self.assertEqual(sorted(out.read_text().splitlines()),
                         sorted(f"[default{rank}]:{line}" for rank in (0, 1) for line in (f"loss {rank}", "my loss")))
        (err,) = self.folder.glob("logs/*/attempt_0/filtered_stderr.log")
        self.assertEqual(sorted(err.read_text().splitlines()), ["[default0]:Error: a,b", "[default1]:Error: a,b"])

    def test_copies_need_a_folder(self):
        code, _, err = self.run_job("--tee=3", "--duplicate-stdout-filters=a", "worker.sh")
        self.assertEqual(code, 2)
        self.assertIn("--duplicate-stdout-filters needs a folder for the file with the copies: give --log-dir DIR", err)

    def test_fold_shows_a_line_of_several_ranks_once(self):
        self.script("#!/bin/sh\necho loading; [ $RANK = 1 ] || echo no cache; echo rank $RANK; echo done\n")
        code, out, _ = self.run_job(*FLAGS, "--nproc-per-node=4", "--fold", "worker.sh")
        self.assertEqual(code, 0)
        seen = collections.defaultdict(set)
        for line in out.splitlines():
            ranks, text = re.fullmatch(r"\[([0-9,-]+)\]:(.*)", line).groups()
            for part in ranks.split(","):
                first, _, last = part.partition("-")
                for rank in range(int(first), int(last or first) + 1):
                    self.assertNotIn(rank, seen[text], "a line of a rank came twice")
                    seen[text].add(rank)
        everyone = set(range(4))
        self.assertEqual(dict(seen), {"loading": everyone, "no cache": everyone - {1}, "done": everyone,
                                      **{f"rank {rank}": {rank} for rank in everyone}})

    def test_fold_puts_sets_into_a_template(self):
        self.script("#!/bin/sh\necho same\n")
        _, out, _ = self.run_job(*FLAGS, "--nproc-per-node=2", "--fold", "--tee=0:1", "--log-line-prefix-template",
                                 "$role_name $rank/$local_rank ", "worker.sh")
        self.assertEqual(sorted(out.splitlines()), ["default 0/0 same", "same"])

    def test_json_is_one_object_a_line(self):
        self.script("#!/bin/sh\nprintf 'out \\377 \"q\"\\n'\nprintf 'err %s' $RANK >&2\n[ $RANK = 0 ] || exit 3\nsleep 1000\n")
        code, out, err = self.run_job("--nproc-per-node=2", "--log-format=json", "--rdzv-id=j 1", "worker.sh")
        self.assertEqual(code, 3)
        lines = [json.loads(line) for line in out.splitlines()]
        self.assertIn(1, {line["rank"] for line in lines})
        for line in lines:
            self.assertRegex(line.pop("ts"), r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$")
            self.assertEqual(line, {"job": "j 1", "node": 0, "rank": line["rank"], "attempt": 0, "stream": "stdout",
                                    "message": 'out \ufffd "q"'})
        lines = [json.loads(line) for line in err.splitlines()]
        self.assertIn(("stderr", "err 1"), {(line["stream"], line["message"]) for line in lines})
        own = [line for line in lines if line["stream"] == "muster"]
        self.assertTrue(own[-1]["message"].startswith("muster: job j 1 failed after"), own)
        self.assertTrue(any(line["level"] == "warning" and "worker failed rank=1" in line["message"] for line in own), own)


class Files(OutputTest):
    def test_log_dir_has_a_folder_for_each_rank_and_nothing_is_written_without_it(self):
        """Fault kind 89."""
        self.script("#!/bin/sh\necho out\n")
        code, out, err = self.run_job("--nproc-per-node=2", "--tee=1", "--log-dir=logs", "worker.sh")
        self.assertEqual(code, 0)
        (folder,) = (self.folder / "logs").iterdir()
        self.assertIn(f"worker logs in {folder}", err)
        self.assertEqual([(folder / f"attempt_0/{rank}/stdout.log").read_text() for rank in "01"], ["out\n"] * 2)
        self.assertEqual(self.run_job("--tee=1", "worker.sh")[0], 0)
        self.assertEqual({path.name for path in self.folder.iterdir()}, {"logs", "locks", "tmp", "worker.sh"})
        self.assertEqual(list((self.folder / "logs").iterdir()), [folder])

    def test_files_are_appended_to_and_no_other_descriptor_reaches_a_worker(self):
        self.script("#!/bin/sh\nls /proc/self/fd; grep flags /proc/self/fdinfo/1\n")
        code, _, _ = self.run_job(*FLAGS, "--redirects=3", "--log-dir=logs", "worker.sh")
        self.assertEqual(code, 0)
        (file,) = self.folder.glob("logs/*/attempt_0/0/stdout.log")
        *descriptors, flags = file.read_text().splitlines()
        self.assertEqual(descriptors, ["0", "1", "2", "3", "9"])  # 3 is of ls, 9 the test's own lock.
        self.assertTrue(int(flags.split()[1], 8) & os.O_APPEND, flags)

    def test_large_files_are_put_aside_at_ends_of_lines(self):
        self.script("#!/bin/sh\ni=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done\n")
        for flags in (["--redirects=1"], ["--tee=1"]):
            code, out, _ = self.run_job(*FLAGS, *flags, "--log-dir=" + flags[0][2:5], "--log-max-size=4K", "--log-keep=2",
                                        "worker.sh")
            self.assertEqual(code, 0)
            (folder,) = self.folder.glob(f"{flags[0][2:5]}/*/attempt_0/0")
            self.assertEqual(sorted(file.name for file in folder.iterdir()), ["stdout.log", "stdout.log.1", "stdout.log.2"])
            pieces = [(folder / name).read_text() for name in ("stdout.log.2", "stdout.log.1", "stdout.log")]
            for piece in pieces:
                self.assertLess(len(piece), 4096 + len("line 3000\n"))
                self.assertRegex(piece, r"\Aline [^$]*\n\Z")
            lines = [int(line.split()[1]) for line in "".join(pieces).splitlines()]
            self.assertEqual(lines, list(range(lines[0], 3000)))


class Input(OutputTest):
    """Fault kinds 91 and 92."""

    COUNT = "#!/bin/sh\necho \"$RANK $(cat | md5sum)\"\n"

    def counts(self, *flags, **options):
        """Which rank read how much: everything, nothing."""
        self.script(self.COUNT)
        data = bytes(range(256)) * 4096
        (self.folder / "data").write_bytes(data)
        sums = {subprocess.run("md5sum", input=text, capture_output=True, check=True).stdout.decode().split()[0]: name
                for text, name in ((data, "all"), (b"", "nothing"))}
        code, out, err = self.run_job(*FLAGS, "--nproc-per-node=3", *flags, "worker.sh", **options)
        self.assertEqual(code, 0, err)
        return [sums.get(line.split()[1], "part") for line in sorted(out.splitlines())]

    def test_goes_to_one_rank_to_all_or_to_none(self):
        for who, expected in (("all", ["all"] * 3), ("1", ["nothing", "all", "nothing"]), ("none", ["nothing"] * 3)):
            for way in ('exec "$@" < data', 'cat data | "$@"'):
                with self.subTest(who, way=way):
                    self.assertEqual(self.counts("--stdin", who, wrap=("sh", "-c", way, "sh")), expected)

    def test_a_closed_one_is_an_empty_one(self):
        for flags in ([], ["--stdin=all"], ["--stdin=0"], ["--stdin=none"]):
            with self.subTest(flags):
                self.assertEqual(self.counts(*flags, wrap=("sh", "-c", 'exec "$@" <&-', "sh")), ["nothing"] * 3)

    def test_nobody_has_to_read_it(self):
        self.script("#!/bin/sh\n[ $RANK = 0 ] || exit 0\nread -r line; echo \"$line\"\n")
        for who in ("all", "0"):
            job = self.start(*FLAGS, "--nproc-per-node=2", "--stdin", who, "worker.sh", stdin=subprocess.PIPE)
            job.stdin.write("first\n")
            job.stdin.flush()
            self.assertEqual(job.wait(PATIENCE), 0)  # Our end is open all the time.
            self.assertEqual(job.stdout.read(), "first\n")

    def test_after_a_restart_workers_get_the_rest(self):
        self.script("#!/bin/sh\ntouch up.$RANK.$TORCHELASTIC_RESTART_COUNT\nread -r line; echo \"$RANK $line\"\n"
                    "while [ \"$line\" = one ] && [ ! -e fail ]; do sleep 0.01; done\n[ \"$line\" != one ]\n")
        job = self.start(*FLAGS, "--nproc-per-node=2", "--max-restarts=1", "--stdin=all", "worker.sh", stdin=subprocess.PIPE)
        job.stdin.write("one\n")
        job.stdin.flush()
        shown = b""
        while shown.count(b"\n") < 2:
            shown += self.read_until(job.stdout, b"\n")
        (self.folder / "fail").touch()
        wait_for(lambda: len(list(self.folder.glob("up.?.1"))) == 2, "the restart")
        job.stdin.write("two\n")
        job.stdin.flush()
        self.assertEqual(job.wait(PATIENCE), 0)
        self.assertEqual(sorted((shown.decode() + job.stdout.read()).splitlines()), ["0 one", "0 two", "1 one", "1 two"])

    def test_a_rank_that_nobody_has_is_said(self):
        self.script("#!/bin/sh\nread -r line\n[ -z \"$line\" ]\n")
        code, _, err = self.run_job("--stdin=7", "worker.sh")
        self.assertEqual(code, 0)
        self.assertIn("--stdin 7: nobody reads the input, since the highest rank is 0", err)

    def test_a_worker_with_the_terminal_can_be_debugged(self):
        self.script("""import os, sys, termios
if os.environ["RANK"] == "0":
    termios.tcsetattr(0, termios.TCSANOW, termios.tcgetattr(0))
    answer = 41
    import pdb; pdb.set_trace()
    print("and on", answer + 1)
else:
    assert not os.isatty(0) and sys.stdin.read() == ""
""", "train.py", 0o644)
        for flags in ([], ["--tee=3"]):
            with self.subTest(flags):
                job, terminal = self.start_on_terminal(*FLAGS, "--nproc-per-node=2", "--stdin=0", *flags, "train.py")
                read_terminal(terminal, b"(Pdb) ")
                os.write(terminal, b"p answer + 1000\n")
                read_terminal(terminal, b"1041")
                os.write(terminal, b"c\n")
                self.assertIn(b"and on 42", read_terminal(terminal))
                self.assertEqual(job.wait(PATIENCE), 0)

    def test_no_worker_is_stopped_for_touching_the_terminal(self):
        self.script("""import fcntl, os, signal, struct, sys, termios
for number in (signal.SIGTTIN, signal.SIGTTOU, signal.SIGTSTP):
    assert signal.getsignal(number) == signal.SIG_DFL
settings = termios.tcgetattr(0)
settings[3] |= termios.TOSTOP
termios.tcsetattr(0, termios.TCSADRAIN, settings)
os.write(1, b"written\\n")
print("read", os.read(0, 100))
""", "touch.py", 0o644)
        job, terminal = self.start_on_terminal(*FLAGS, "touch.py")
        read_terminal(terminal, b"written")
        os.write(terminal, b"line\n")
        self.assertIn(b"read b'line\\n'", read_terminal(terminal))
        self.assertEqual(job.wait(PATIENCE), 0)


class Crowd(OutputTest):
    """Fault kind 94."""

    def test_long_lines_of_many_workers_never_mix(self):
        self.script("""import os, sys
rank = os.environ["RANK"]
for number in range(1250):
    os.write(1 + number % 2, f"{rank} {number:5} {rank * 9990}\\n".encode())
""", "train.py", 0o644)
        job = self.start(*FLAGS, "--nproc-per-node=8", "--tee=3", "train.py", stderr=subprocess.STDOUT)
        out, _ = job.communicate(timeout=PATIENCE)
        self.assertEqual(job.returncode, 0)
        seen = collections.Counter()
        for line in out.splitlines():
            rank, _, text = line.removeprefix("[default").split(maxsplit=2)
            rank = rank.removesuffix("]:" + rank[0])
            self.assertEqual(text, rank * 9990, "a line is of one rank")
            seen[rank] += 1
        self.assertEqual(seen, {str(rank): 1250 for rank in range(8)})

    def test_a_flood_starves_nobody_and_takes_no_memory(self):
        self.script("""#!/bin/sh
if [ $RANK = 0 ]; then exec yes 'a line of the flood, one of very many'; fi
i=0; while [ $i -lt 50 ]; do echo "rank 1 line $i"; read -r go; i=$((i+1)); done
exec sleep 1000
""")
        job = self.start(*FLAGS, "--nproc-per-node=2", "--tee=3", "--stdin=1", "worker.sh", stdin=subprocess.PIPE)
        for number in range(50):
            shown, wanted = b"", b"rank 1 line %d\n" % number
            while wanted not in shown:
                part = os.read(job.stdout.fileno(), 1 << 20)
                self.assertTrue(part, "the end came too early")
                shown = shown[-len(wanted):] + part
            job.stdin.write("\n")
            job.stdin.flush()
        (agent,) = children_of(job.pid)
        peak = int(re.search(r"VmHWM:\s+(\d+) kB", pathlib.Path(f"/proc/{agent}/status").read_text())[1])
        self.assertLess(peak, (512 if SANITIZED else 64) << 10)  # AddressSanitizer keeps what is freed, for a while.
        job.terminate()
        job.communicate(timeout=PATIENCE)

    def test_a_reader_that_stops_for_a_while_loses_nothing(self):
        self.script("#!/bin/sh\ni=0; while [ $i -lt 30000 ]; do echo \"line $i of the worker\"; i=$((i+1)); done\n")
        reader, writer = os.pipe()
        job = self.start(*FLAGS, "--tee=1", "worker.sh", stdout=writer)
        full = select.poll()
        full.register(writer, select.POLLOUT)
        wait_for(lambda: not full.poll(0), "the pipe to be full")
        os.close(writer)
        with os.fdopen(reader) as out:
            self.assertEqual(out.read(), "".join(f"[default0]:line {number} of the worker\n" for number in range(30000)))
        self.assertEqual(job.wait(PATIENCE), 0)

    def test_full_disks_and_readers_that_are_gone_cost_the_output_and_are_said(self):
        self.script("#!/bin/sh\ni=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done\ntouch finished\n")
        for flags in (["--tee=1"], ["--fold"], ["--log-format=json"]):
            for where, why in (("> /dev/full", "No space left on device"), ("| true", "Broken pipe")):
                with self.subTest(flags, where=where):
                    (self.folder / "finished").unlink(missing_ok=True)
                    code, _, err = self.run_job(*flags, "worker.sh", wrap=("bash", "-o", "pipefail", "-c", f'"$@" {where}', "sh"))
                    self.assertEqual(code, 0, err)
                    self.assertTrue((self.folder / "finished").exists())
                    self.assertIn(f"output lost: stdout can't be written any more ({why})", err)

    def test_a_grandchild_that_holds_the_streams_delays_nothing(self):
        self.script("#!/bin/sh\n(setsid sleep 1000 &)\nprintf 'no newline'\nexit 5\n")
        for flags in (["--tee=3"], ["--fold"], ["--log-format=json"], ["--stdin=all", "--tee=3"]):
            with self.subTest(flags):
                code, out, _ = self.run_job(*FLAGS, *flags, "worker.sh")
                self.assertEqual(code, 5)
                self.assertIn("no newline", out)


def children_of(pid):
    return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


class TemporaryFolders(OutputTest):
    """Fault kind 95."""

    def run_with(self, tmpdir, *flags, mount=None):
        self.script("#!/bin/sh\necho out\n")
        self.environment["TMPDIR"] = str(tmpdir)
        wrap = ("unshare", "--mount", "--propagation", "private", "sh", "-c", f'{mount} && exec "$@"', "sh") if mount else ()
        return self.run_job(*flags, "worker.sh", wrap=wrap)

    def test_nothing_needs_one_unless_files_are_asked_for(self):
        missing = self.folder / "missing"
        self.assertEqual(self.run_with(missing), (0, "out\n", ""))
        code, _, err = self.run_with(self.folder / "file/below", "--redirects=1")
        self.assertEqual(code, 0, err)  # It is made.
        (self.folder / "plain").write_text("")
        code, _, err = self.run_with(self.folder / "plain", "--redirects=1")
        self.assertEqual(code, 2)
        self.assertIn(f"--redirects: make log folder {self.folder}/plain", err)

    @needs_root
    def test_read_only_full_and_noexec(self):
        place = self.folder / "place"
        place.mkdir()
        for options, fill, flags, expected in (
                ("ro", "true", ["--redirects=1"], 2), ("ro", "true", [], 0), ("noexec", "true", ["--redirects=1"], 0),
                ("size=1m", f"(head -c 2M /dev/zero > {place}/fill || true)", [], 0),
                ("size=1m", f"(head -c 2M /dev/zero > {place}/fill || true)", ["--tee=1", f"--log-dir={place}"], (0, 2))):
            with self.subTest(options=options, flags=flags):
                code, out, err = self.run_with(place, *flags, mount=f"mount -t tmpfs -o {options} none {place} && {fill}")
                self.assertIn(code, expected if isinstance(expected, tuple) else (expected,), err)
                if code == 2:
                    self.assertRegex(err, rf"--(redirects|log-dir): make (log )?folder {place}\S*: \w+")
                elif "--tee=1" in flags:
                    self.assertEqual(out, "[default0]:out\n")
                    self.assertRegex(err, r"log lost: \S+stdout.log can't be written any more \(No space left on device\)")


if __name__ == "__main__":
    unittest.main()
