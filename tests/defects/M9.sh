# M9: a PyTorch checkpoint is recognized, and the message says how to convert it.
python3 - <<'END'
import os, zipfile
for name in ("model.bin", "folder/pytorch_model.bin"):
    os.makedirs("folder", exist_ok=True)
    with zipfile.ZipFile(name, "w") as archive:
        for member in ("data.pkl", "byteorder", "data/0", "version"):
            archive.writestr(zipfile.ZipInfo("archive/" + member), b"\x80\x02}q\x00.")
with open("old.pt", "wb") as out:
    out.write(bytes.fromhex("80028a0a6cfc9c46f9206aa850192e") + b"\x80\x02M\xe9\x03.")
with zipfile.ZipFile("empty.npz", "w") as archive: # still an archive of arrays
    pass
END
run() {
    echo "$ coffer $*"
    coffer "$@"
    echo "exit $?"
}
exec 2>&1
for file in model.bin old.pt folder; do
    run info $file
done
run check model.bin
run ls model.bin
run convert model.bin x.mcf
run convert model.bin x.safetensors
run pack folder x.mcf
run info empty.npz
