# Every file of a folder is packed or named, whatever it is called and whatever it is: the sum always matches.
python3 - "$DATA/media" <<'EOF'
import json, os, random, shutil, socket, subprocess, sys

media = sys.argv[1]
os.umask(0o022)
kinds = ["jpg jpeg png webp gif bmp tiff tif ppm pgm wav flac mp3 ogg opus m4a aac mp4 webm mkv avi npy txt md "
         "json csv xml html py sh zip tar gz heic avif svg psd bin dat exe log yaml db"][0].split()
assert len(kinds) >= 40, len(kinds)
contents = {name.split(".")[-1]: os.path.join(media, name) for name in os.listdir(media) if name != "README.md"}
odd = ["with space", "ümlaut", "new\nline", "-dash", "--option", "quote'\"", "back\\slash", "%s%n", "*", "a" * 200,
       "trailing.", "UPPER", "emoji-\N{SNOWMAN}", "tab\there", "$(echo x)", "..."]

def put(path, data):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)

def fill(folder, seed):
    choose = random.Random(seed)
    for kind in kinds:
        source = contents.get(kind)
        data = open(source, "rb").read() if source else b"content of " + kind.encode()
        where = os.path.join(folder, choose.choice(["", "cat", "dog", "cat/deep", ".hidden"]))
        put(os.path.join(where, "file." + kind), data)
        if choose.random() < 0.3:
            put(os.path.join(where, "cut." + kind), data[:len(data) // 2])
        if choose.random() < 0.3:
            put(os.path.join(where, "empty." + kind), b"")
    for name in odd:
        put(os.path.join(folder, name + choose.choice([".png", ".txt", ""])), open(contents["png"], "rb").read())
    put(os.path.join(folder, "Thumbs.db"), b"x")
    os.symlink("file.png", os.path.join(folder, "link.png"))
    os.symlink("nowhere", os.path.join(folder, "dangling"))
    os.symlink("..", os.path.join(folder, "loop"))
    os.mkfifo(os.path.join(folder, "pipe.png"))
    listening = socket.socket(socket.AF_UNIX)
    here = os.getcwd()
    os.chdir(folder)
    listening.bind("socket")
    os.chdir(here)
    put(os.path.join(folder, "secret.png"), b"x")
    os.chmod(os.path.join(folder, "secret.png"), 0)

def count(folder):
    return sum(len(files) + sum(os.path.islink(os.path.join(root, name)) for name in folders)
               for root, folders, files in os.walk(folder))

def check(folder, expected, *options):
    done = subprocess.run(["coffer", "pack", folder, "out.mldf", "--force", "--restart", "--keep-going", "--json",
                           *options], capture_output=True)
    assert done.returncode in (0, 1), (done.returncode, done.stderr)
    report = json.loads(done.stdout.decode())
    assert report["found"] == expected, (options, report["found"], expected)
    assert report["packed"] + report["skipped"] == report["found"], (options, report)
    assert len(report.get("left_out", [])) == report["skipped"], options
    assert all(entry["text"] and entry["sample"] for entry in report.get("left_out", [])), options
    stored = subprocess.run(["coffer", "get", "out.mldf", "--field", "path", "--json"], capture_output=True, check=True)
    assert len(json.loads(stored.stdout.decode())) == report["samples"] == report["packed"], options
    text = subprocess.run(["coffer", "pack", folder, "text.mldf", "--force", "--restart", "--keep-going", *options],
                          capture_output=True).stdout.decode()
    assert ("left out %s of %s files" % (report["skipped"], expected)) in text, text
    assert done.returncode == (0 if report["complete"] else 1)
    return report

for seed in range(2):
    folder = "folder%d" % seed
    os.mkdir(folder)
    fill(folder, seed)
    total = count(folder)
    for kind in ["images", "audio", "text", "video"]:
        check(folder, total, "--kind", kind)
    check(folder, total)
    check(folder, total, "--exclude", "*.png", "--exclude", "cat/*")
    check(folder, total, "--decode", "--max-size", "4")
print("found = packed + left out, for every kind and every folder")

# Links are followed on request, and never in circles.
os.makedirs("linked/real")
put("linked/real/a.png", open(contents["png"], "rb").read())
os.symlink("real", "linked/again")
os.symlink("..", "linked/real/up")
report = check("linked", 4, "--follow-links")
assert report["packed"] == 2, report

# Members of shards.
subprocess.run(["tar", "-cf", "shard.tar", "-C", media, "small.png", "small.jpg", "README.md"], check=True)
put("plain", b"x")
subprocess.run(["tar", "-rf", "shard.tar", "plain"], check=True)
done = subprocess.run(["coffer", "pack", "shard.tar", "shard.mldf", "--json"], capture_output=True)
report = json.loads(done.stdout.decode())
assert report["unit"] == "members" and report["found"] == 4, report
assert report["packed"] + report["skipped"] == 4 and report["left_out"][0]["sample"].endswith("plain"), report
print("members of shards too")

# Model folders, and files that really cannot be read: root reads everything, so the command runs as another user.
def fill_model(folder):
    shutil.copytree(os.path.join(media, "..", "compat", "mcf", "hf-folder"), folder)
    os.chmod(folder, 0o755)
    for kind in kinds:
        put(os.path.join(folder, "other", "file." + kind), b"content of " + kind.encode())
    for name in odd:
        put(os.path.join(folder, name + ".txt"), b"x")
    put(os.path.join(folder, "empty"), b"")
    put(os.path.join(folder, ".hidden file"), b"x")
    os.symlink("config.json", os.path.join(folder, "link.json"))
    os.mkfifo(os.path.join(folder, "pipe"))

def pack_model(folder, expected, status, *options):
    run = ["coffer", "pack", folder, "drop/out.mcf", "--force", *options]
    if os.geteuid() == 0:
        run = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", *run]
    done = subprocess.run([*run, "--json"], capture_output=True)
    assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
    files = json.loads(done.stdout.decode())["files"]
    assert files["found"] == expected, (files["found"], expected)
    assert files["packed"] + len(files["left_out"]) == expected, files
    assert all(entry["name"] and entry["reason"] for entry in files["left_out"]), files
    assert files["complete"] == (status == 0), files
    text = subprocess.run(run, capture_output=True)
    assert text.returncode == status, text
    if files["left_out"]:
        line = "files found: %d, packed: %d, left out: %d" % (expected, files["packed"], len(files["left_out"]))
        assert line in text.stdout.decode(), text.stdout
    return {entry["name"] for entry in files["left_out"]}

os.mkdir("drop")
os.chmod("drop", 0o777)
top = os.getcwd()
while top != "/":  # the other user must be able to come here
    os.chmod(top, os.stat(top).st_mode | 0o011)
    top = os.path.dirname(top) if top.startswith("/tmp/") and os.path.dirname(top) != "/tmp" else "/"
fill_model("model")
names = pack_model("model", count("model"), 0)
assert "pipe" in names, names
pack_model("model", count("model"), 0, "--no-files")
put("model/secret.txt", b"x")
put("model/locked/inside.txt", b"x")
total = count("model")
os.chmod("model/secret.txt", 0)
os.chmod("model/locked", 0)
names = pack_model("model", total, 1)  # a closed folder counts as one
assert "secret.txt" in names and any(name.startswith("locked") for name in names), names
os.chmod("model/locked", 0o755)
print("model folders too, with files that cannot be read")

def pack_set(folder, expected):
    run = ["coffer", "pack", folder, "drop/out.mldf", "--force", "--restart", "--keep-going", "--json"]
    if os.geteuid() == 0:
        run = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", *run]
    done = subprocess.run(run, capture_output=True)
    report = json.loads(done.stdout.decode())
    assert done.returncode == 1 and not report["complete"], (done.returncode, report)
    assert report["found"] == expected and report["packed"] + report["skipped"] == expected, report
    assert any("secret.png" in entry["sample"] for entry in report["left_out"]), report

pack_set("folder0", count("folder0"))
print("and training sets")
EOF

echo "# files without anything of a model"
: >nothing
echo hello >hello.txt
coffer pack nothing hello.txt nothing.mcf
echo "exit $?"
test -e nothing.mcf || echo "nothing was written"
