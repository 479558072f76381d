# --damaged keep: verbs that read continue at damage, report it, exit with 1, and what they write records it.
bend() { # FROM TO BYTES: flips the lowest bit of the first of these bytes
    offset=$(LC_ALL=C grep -abo "$3" "$1" | head -n 1 | cut -d : -f 1)
    cp "$1" "$2"
    byte=$(printf '%s' "$3" | cut -c 1 | tr 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz' 'BADCFEHGJILKNMPORQTSVUXWZYbadcfehgjilknmporqtsvuxwzy')
    printf '%s' "$byte" | dd of="$2" bs=1 seek="$offset" conv=notrunc 2>/dev/null
}
run() {
    echo "\$ coffer $*"
    coffer "$@" 2>&1 | sed 's/[0-9a-f]\{8\}/…/g; s/\(at\|offset\|at offset\) [0-9][0-9]*/\1 N/g'
}
status() {
    coffer "$@" >/dev/null 2>&1
    echo "exit $?: coffer $*"
}

echo "# models"
python3 - <<'END'
import struct
def npy(name, text):
    head = ("{'descr': '|u1', 'fortran_order': False, 'shape': (%d,), }" % len(text)).ljust(117) + "\n"
    open(name, "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + text)
npy("a.npy", b"Alphabet")
npy("b.npy", b"Betatest")
open("config.json", "w").write('{"hidden_size": 64, "note": "Gammaray"}\n')
END
coffer pack a.npy b.npy config.json good.mcf >/dev/null
bend good.mcf bent.mcf Alphabet
status get bent.mcf a
run get bent.mcf a --damaged keep
run get bent.mcf b --damaged keep
run stats bent.mcf --include a --csv --damaged keep
run diff good.mcf bent.mcf --damaged keep --json
for to in safetensors gguf; do
    run convert bent.mcf out.$to --damaged keep
    run check out.$to
    run convert out.$to back.mcf
    status convert out.$to back.mcf --damaged keep
    run check back.mcf
    rm back.mcf
done
run convert out.safetensors again.safetensors --damaged keep
status get out.safetensors a
status get out.safetensors b
status stats out.gguf
status check again.safetensors
run convert bent.mcf - --to csv --tensor a --damaged keep --json
bend good.mcf section.mcf Gammaray
status get section.mcf config.json
run get section.mcf config.json --damaged keep
status convert good.mcf fine.safetensors --damaged keep
status check fine.safetensors

echo "# training sets"
printf '{"id": 1, "text": "Alphabet"}\n{"id": 2, "text": "Betatest"}\n' >set.jsonl
coffer convert set.jsonl good.mldf
bend good.mldf bent.mldf Betatest
run get bent.mldf 0..2 --json
run get bent.mldf 0..2 --json --damaged keep
run convert bent.mldf - --to jsonl --damaged keep
status split bent.mldf --parts x=0.5,y=0.5 --damaged stop
run split bent.mldf --parts x=0.5,y=0.5 --damaged keep
status check bent-x.mldf
status check bent-y.mldf
run concat good.mldf bent.mldf both.mldf --damaged keep
run check --full both.mldf
run convert both.mldf - --to jsonl
run compact bent.mldf -o small.mldf --damaged keep
run check --full small.mldf
status concat bent.mldf plain.mldf --damaged keep --no-checksums

echo "# rows of training sets"
python3 - <<'END'
whole = bytearray(open("good.mldf", "rb").read())
whole[whole.rindex(b"CFMLGARD") - 24] ^= 4  # the id of the last sample
open("rows.mldf", "wb").write(whole)
END
status stats rows.mldf
run stats rows.mldf --damaged keep
run stats rows.mldf --damaged keep --json
run concat rows.mldf good.mldf marked.mldf --damaged keep
run check --full marked.mldf
status set rows.mldf 0.id=7

echo "# packed values that cannot be decoded"
seq 1 3 | sed 's/.*/{"id": &, "text": "sample & sample & sample & sample & sample &"}/' >long.jsonl
coffer pack long.jsonl packed.mldf --zstd >/dev/null
python3 - <<'END'
whole = bytearray(open("packed.mldf", "rb").read())
place = whole.index(b"\x28\xb5\x2f\xfd", whole.index(b"\x28\xb5\x2f\xfd") + 4)  # the second frame
whole[place + 1] ^= 1
open("packed.mldf", "wb").write(whole)
END
run convert packed.mldf - --to jsonl --damaged keep

echo "# scans"
printf 'token_idx,param_name,block_idx,activation,grad_norm,sequence\n0,q,0,500,60,0\n1,q,0,700,80,0\n' >scan.csv
coffer convert scan.csv good.mscan
python3 - <<'END'
whole = bytearray(open("good.mscan", "rb").read())
whole[-1] ^= 1
open("bent.mscan", "wb").write(whole)
END
run get bent.mscan
run get bent.mscan --damaged keep
run stats bent.mscan --csv --damaged keep
status heatmap bent.mscan --damaged keep
status diff good.mscan bent.mscan --damaged keep
run convert bent.mscan - --to jsonl --damaged keep
status split bent.mscan

echo "# matrices"
printf '1,2\n3,4\n' >m.csv
coffer convert m.csv good.pycauset
python3 - <<'END'
whole = bytearray(open("good.pycauset", "rb").read())
whole[4096 + 6] ^= 1
open("bent.pycauset", "wb").write(whole)
END
status get bent.pycauset 0,0
run get bent.pycauset 0,0 --damaged keep
run convert bent.pycauset - --to csv --damaged keep
status stats bent.pycauset --damaged keep
run compact bent.pycauset -o small.pycauset --damaged keep
run check --full small.pycauset

echo "# traces: what is damaged is left out; --damaged stop prints nothing else"
coffer compress "$DATA/vectors/mlyze/mixed.mlyze" -o good.mlyze >/dev/null
python3 - <<'END'
whole = bytearray(open("good.mlyze", "rb").read())
whole[len(whole) * 9 // 10] ^= 4
open("bent.mlyze", "wb").write(whole)
END
run peak bent.mlyze --damaged keep
run leaks bent.mlyze --damaged keep --json
for verb in peak leaks temporaries flame stats timeline 'diff good.mlyze'; do
    run $verb bent.mlyze --damaged stop
    status $verb bent.mlyze --damaged stop
    status $verb bent.mlyze --damaged keep
done
status get bent.mlyze --damaged stop
