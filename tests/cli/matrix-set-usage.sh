# Changes that cannot be: the file is as it was.
exec 2>&1
m=$DATA/vectors/pycauset
mkdir folder
cp "$m/updated-once.pycauset" m.pycauset
cp m.pycauset before
say() {
    echo "\$ coffer $*"
    coffer "$@"
    echo "exit $?"
}
say set
say set m.pycauset
say set m.pycauset --json
say set m.pycauset label
say set m.pycauset =x
say set m.pycauset rows=7
say set m.pycauset data_type=INT8
say set m.pycauset payload_uuid=x
say set m.pycauset --json 'payload_layout={}'
say set m.pycauset properties.a=1 rows=7
say set m.pycauset view.is_transposed=perhaps
say set m.pycauset properties.note.deeper=1
say set m.pycauset properties=text
say set m.pycauset --delete properties.nothing
say set m.pycauset --delete rows
say set m.pycauset --delete
say set m.pycauset --int properties.n=1.5
say set m.pycauset --int properties.n=
say set m.pycauset --int properties.n=99999999999999999999
say set m.pycauset --uint properties.n=-1
say set m.pycauset --float properties.n=one
say set m.pycauset --bool properties.n=1
say set m.pycauset --bytes-hex properties.n=0g
say set m.pycauset --bytes-hex properties.n=abc
say set m.pycauset --json 'properties.n={"a":'
say set m.pycauset --json properties.n=null
say set m.pycauset --cached trace=much
say set m.pycauset --int
say set m.pycauset --int --float properties.n=1
say set m.pycauset --int --delete properties.note
say set m.pycauset --durability most properties.n=1
say set m.pycauset --nothing
say set - properties.n=1 <m.pycauset
say set folder properties.n=1
say set missing.pycauset properties.n=1
say set "$m/newest-metadata-corrupt.pycauset" properties.n=1
say set "$m/both-slots-corrupt.pycauset" properties.n=1
cmp m.pycauset before && echo "the file is as it was"

echo "# one writer at a time"
python3 - <<'END'
import subprocess
code = "import fcntl, sys; f = open('m.pycauset'); fcntl.flock(f, fcntl.LOCK_EX); print('held', flush=True); sys.stdin.read()"
holder = subprocess.Popen(["python3", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
print(holder.stdout.readline().decode(), end="", flush=True)
print("exit", subprocess.run(["coffer", "set", "m.pycauset", "properties.n=1"]).returncode, flush=True)
print("exit", subprocess.run(["coffer", "get", "m.pycauset", "rows"]).returncode, flush=True)
holder.communicate()
print("exit", subprocess.run(["coffer", "set", "m.pycauset", "properties.n=1"]).returncode, flush=True)
END
ls
