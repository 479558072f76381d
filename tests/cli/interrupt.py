"""Runs the command with a SIGINT at chosen points: before and after calls that change a file."""
import os, signal, subprocess

folder = os.path.dirname(subprocess.run(["which", "coffer"], stdout=subprocess.PIPE, text=True).stdout)
tool = os.path.join(folder, "tests", "coffer-interrupted")


def run(words, **settings):
    environment = dict(os.environ, **settings)
    done = subprocess.run([tool] + words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    return done.returncode, done.stderr


def points(words, most=24):
    """Points of a command, evenly spread and all of the last calls. Runs it once, undisturbed."""
    status, said = run(words, COFFER_TEST_CALLS="calls")
    assert status == 0, said
    last = 2 * int(open("calls").read())
    os.unlink("calls")
    assert last > 0, words
    spread = {1 + i * last // (most // 2) for i in range(most // 2)}
    return sorted(spread | set(range(max(1, last - most // 2 + 1), last + 1)))


def interrupt(words, point):
    status, said = run(words, COFFER_TEST_INTERRUPT=str(point))
    assert status in (0, -signal.SIGINT), (words, point, status, said)
    return status, said
