# One changed bit anywhere in a file of ours is found: here in the header, in names, element types, section
# types and padding. (tests/unit/mcf flips every bit.)
coffer pack -q "$DATA/compat/mcf/hf-folder" model.mcf >/dev/null
coffer check --full model.mcf
flip() { # OFFSET BIT
    cp model.mcf bent.mcf
    byte=$(od -An -tu1 -j"$1" -N1 model.mcf)
    printf "\\$(printf %o $((byte ^ (1 << $2))))" | dd of=bent.mcf bs=1 seek="$1" conv=notrunc 2>/dev/null
}
found=0 missed=0
size=$(wc -c <model.mcf)
at=0
while [ $at -lt "$size" ]; do
    flip $at $((at % 8))
    if coffer check --full bent.mcf >/dev/null 2>&1; then missed=$((missed + 1)); else found=$((found + 1)); fi
    at=$((at + 409))
done
echo "found: $found, missed: $missed"

# The entry of Checksums itself.
directory=$(od -An -tu8 -j16 -N8 model.mcf)
count=$(od -An -tu4 -j12 -N4 model.mcf)
i=0
while [ $i -lt $count ]; do
    entry=$((directory + 24 * i))
    [ "$(od -An -tu4 -j$entry -N4 model.mcf | tr -d ' ')" = 1128988673 ] && break
    i=$((i + 1))
done
flip $entry 4
coffer check --full bent.mcf
echo "exit $?"
coffer info bent.mcf
echo "exit $?"
