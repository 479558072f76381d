"""Every verb with files that are not what it expects, and outputs that cannot be written: no verb may hang, crash or
succeed, and every error names the file and what to do next. Prints, for each file, the exit status and the message with
the verbs that ended so."""

import os
import socket
import subprocess
import sys

os.environ["COFFER_PIPE_WAIT"] = "0"
# Root may read and write everything; without its capabilities it is a user like others.
AS_USER = ["setpriv", "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs"] if os.geteuid() == 0 else []

READ = """info F|ls F|get F|stats F|diff F good.mscan|diff good.mscan F|log F|replay F|check F|check --full F|repair F -o out.mldf
set F a=1|revert F|append F rows.csv|append good.mscan F|compact F|compact F -o out.mldf|compress F|convert F out.csv
convert F out.mldf|pack F out.mcf|pack n.npy F out.mcf|unpack F out|quantize F out.mcf --type q8|head F|delete F 1|rename F a=b
concat F good.mldf out.mldf|concat good.mldf F out.mldf|split F|order F|peak F|leaks F|temporaries F|heap F|flame F -o out.svg
timeline F|heatmap F|sheet F -o out.png|get good.mldf 0.text --key-file F|repair good.mldf --from F -o out.mldf"""
FEW = "info F|check F|convert F out.csv|set F a=1|pack F out.mldf|diff good.mscan F|get good.mldf 0.text --key-file F"
WRITE = """convert good.mldf F.tar|compact good.mldf -o F.mldf|repair bent.mldf -o F.mldf|repair bent.mldf --from good.mldf -o F.mldf
concat good.mldf good.mldf F.mldf|get good.mldf 0.text -o F.txt|get n.npy n -o F.npy|convert good.mscan F.csv|convert n.npy F.mcf
compress good.mlyze -o F.mlyze|flame good.mlyze -o F.svg|timeline good.mlyze -o F.svg|heatmap good.mscan -o F.png|sheet good.mldf -o F.png
quantize model.mcf F.mcf --type q8|pack n.npy F.mcf|convert good.pycauset F.npy|split good.mldf --parts a=1 -o F/parts"""
STREAM = """compact good.mldf -o F|repair bent.mldf -o F|get good.mldf 0.text -o F|get n.npy n -o F|convert good.mscan F --to csv
convert good.mldf F --to jsonl|compress good.mlyze -o F|flame good.mlyze -o F|convert good.pycauset F --to npy"""
PRINT = """info good.mldf|ls good.mldf|get good.mldf 0|stats good.mldf|check good.mldf|diff good.mldf good.mldf|head good.mldf
order good.mldf|peak good.mlyze|heatmap good.mscan|log good.pycauset|convert good.mldf - --to jsonl|help info|formats|version
info good.mldf --json|completion bash"""


def table(text):
    return [line for part in text.splitlines() for line in part.split("|")]


def run(command, name, prefix=(), **options):
    """Status and messages. A verb that waits is ended after a minute."""
    words = [name + word[1:] if word[0] == "F" else word for word in command.split()]
    done = subprocess.run([*prefix, "coffer", *words], stdin=subprocess.DEVNULL if "stdin" not in options else None,
                          stderr=subprocess.PIPE, timeout=60, stdout=options.get("stdout", subprocess.PIPE))
    out = (done.stdout or b"").decode().strip() if command.startswith("check") else ""
    return done.returncode, "\n".join(filter(None, [out, done.stderr.decode().strip()]))


def show(title, commands, name, prefix=(), **options):
    print("====", title)
    found = {}
    for command in commands:
        status, text = run(command, name, prefix, **options)
        found.setdefault((status, text), []).append(command.replace(" F", " …"))
    for (status, text), verbs in found.items():
        print("exit %d: %s" % (status, "; ".join(verbs)))
        print("".join("    %s\n" % line for line in text.splitlines()), end="")


def make(*words):
    subprocess.run(["coffer", *words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def write(name, text):
    with open(name, "w") as file:
        file.write(text)


write("rows.csv", "token_idx,param_name,block_idx,activation,grad_norm,sequence\n0,q,0,500,60,0\n")
write("m.csv", "1,2\n3,4\n")
write("rows.jsonl", '{"id":1,"text":"one"}\n')
make("convert", "rows.csv", "good.mscan")
make("convert", "m.csv", "good.pycauset")
make("convert", "m.csv", "n.npy")
make("convert", "n.npy", "model.mcf")
make("convert", "rows.jsonl", "good.mldf")
make("compress", os.environ["DATA"] + "/vectors/mlyze/mixed.mlyze", "-o", "good.mlyze")
with open("good.mldf", "rb") as file:
    bent = bytearray(file.read())
bent[20] ^= 1
with open("bent.mldf", "wb") as file:
    file.write(bent)
os.mkdir("folder")
write("empty", "")
os.mkfifo("pipe")
os.symlink("loop", "loop")
os.symlink("nowhere", "dangling")
bound = socket.socket(socket.AF_UNIX)
bound.bind("socket")
write("unreadable", "x")
os.chmod("unreadable", 0)
os.mkdir("read-only", 0o555)

if sys.argv[1] == "inputs":
    show("a missing file", table(READ), "missing")
    show("a folder", table(READ), "folder")
    # An empty file may be one of a model's files.
    show("an empty file", [command for command in table(READ) if not command.startswith("pack")], "empty")
    show("a pipe that nobody writes to", table(FEW), "pipe")
    show("/dev/null", table(FEW), "/dev/null")
    show("a socket", table(FEW), "socket")
    show("a file of somebody else", table(FEW), "unreadable", AS_USER)
    show("a link to itself", table(FEW), "loop")
    show("a link to nothing", table(FEW), "dangling")
    show("a file as a folder", table(FEW), "good.mldf/x")
    show("closed standard input", table(FEW)[:4], "-", ("sh", "-c", 'exec "$@" <&-', "sh"), stdin=None)
else:
    show("a folder that is missing", table(WRITE), "missing/out")
    show("a folder that is read-only", table(WRITE), "read-only/out", AS_USER)
    show("a folder", table(STREAM), "folder")
    show("a full disk", table(STREAM), "/dev/full")
    with open("/dev/full", "wb") as full:
        show("standard output on a full disk", table(PRINT), "", stdout=full)
    show("closed standard output", table(PRINT), "", ("sh", "-c", 'exec "$@" >&-', "sh"))
print("left:", " ".join(sorted(set(os.listdir()) - {"rows.csv", "m.csv", "rows.jsonl", "bent.mldf", "folder", "empty", "pipe", "loop",
      "dangling", "socket", "unreadable", "read-only", "n.npy", "model.mcf", "good.mlyze.idx", *("good." + e for e in ("mscan", "pycauset", "mldf", "mlyze"))})))
