# The tutorial's generic lookup: the bytes at a pointer, whose size is in the allocation table (coffer_mldf_read_payload).
set="$DATA/vectors/mldf/all-types-208.mldf"
python3 - "$set" <<'END'
import bisect, json, struct, subprocess, sys
whole = open(sys.argv[1], "rb").read()
table, = struct.unpack_from("<Q", whole, 9 + 48)
listed = subprocess.run(["coffer", "ls", "--what", "table", "--json", sys.argv[1]], stdout=subprocess.PIPE, check=True).stdout
entries = [json.loads(line) for line in listed.splitlines()]
assert [(e["offset"], e["size"]) for e in entries] == [struct.unpack_from("<QI", whole, at) for at in range(table, len(whole), 16)]
for e in entries[::13]:
    found = subprocess.run(["coffer", "get", sys.argv[1], "@%d" % e["offset"]], stdout=subprocess.PIPE, check=True).stdout
    assert found == whole[e["offset"]:e["offset"] + e["size"]]
print("%d payloads are listed as they are in the file" % len(entries))
END
coffer get "$set" @8193
echo "exit $?"
coffer get "$set" @18446744073709551615 2>&1 | head -n 1
