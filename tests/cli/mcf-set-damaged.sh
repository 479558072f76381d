# set neither loses nor launders a damaged ModelInfo or Files section: it refuses and leaves the file as it was.
printf '{"hidden_size": 64}\n' >config.json
printf 'Gammaray\n' >notes.txt
python3 - <<'END'
import struct
head = "{'descr': '|u1', 'fortran_order': False, 'shape': (8,), }".ljust(117) + "\n"
open("a.npy", "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + b"Alphabet")
END
coffer pack -q a.npy config.json good.mcf >/dev/null
coffer set good.mcf notes.txt -i notes.txt >/dev/null
coffer set good.mcf model_name=Betatest >/dev/null
coffer compact good.mcf >/dev/null
try() { # WORD ARGUMENTS: flips a bit of the first byte of the word, and runs set
    word=$1
    shift
    cp good.mcf bent.mcf
    offset=$(LC_ALL=C grep -abo "$word" bent.mcf | head -n 1 | cut -d : -f 1)
    printf C | dd of=bent.mcf bs=1 seek="$offset" conv=notrunc 2>/dev/null
    cp bent.mcf before.mcf
    echo "\$ coffer set bent.mcf $*"
    coffer set bent.mcf "$@" 2>&1 | sed 's/[0-9a-f]\{8\}/…/g; s/offset [0-9][0-9]*/offset N/'
    cmp before.mcf bent.mcf && echo "unchanged"
}
try Betatest model_name=other
try Betatest kv.license=mit
try Gammaray other.txt -i notes.txt
echo "# what is not read can be changed, and the damage stays known"
try Betatest config.json -i config.json
printf '{"hidden_size": 65}\n' >config.json
try Betatest config.json -i config.json
coffer check --full bent.mcf | grep error | sed 's/[0-9a-f]\{8\}/…/g; s/at [0-9][0-9]*/at N/'
echo "# after a repair the damage is recorded, and set still refuses"
coffer repair bent.mcf -o repaired.mcf >/dev/null 2>&1
echo "exit $?"
coffer set repaired.mcf model_name=other 2>&1 | sed 's/offset [0-9][0-9]*/offset N/'
coffer set repaired.mcf --delete Damage
coffer set repaired.mcf model_name=other
coffer check --full repaired.mcf | head -n 1
