# Checksums that another program carried over to a file with another layout are stale: a note, no errors.
cp "$DATA/compat/mcf/stale-checksums.mcf" "$DATA/compat/mcf/stale-checksums-0.1.mcf" .
for file in stale-checksums.mcf stale-checksums-0.1.mcf; do
    coffer check --full $file
    echo "exit $?"
    coffer get $file model.norm.weight --rows 0 >/dev/null && echo "readable"
    coffer set $file --checksum >/dev/null
    coffer check --full $file | grep -v trailing-bytes
done
