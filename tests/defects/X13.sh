# A wrong checksum names the damaged tensor, not the first one of the MiB; a table of 0.1 names all of them.
coffer pack -q "$DATA/compat/mcf/hf-folder" model.mcf >/dev/null
hide() { sed 's/at [0-9][0-9]*/at …/; s/[0-9a-f]\{8\}/…/g'; }
bend() { # FILE TENSOR
    offset=$(coffer ls "$1" "$2" --json | sed 's/.*"offset":\([0-9]*\).*/\1/')
    cp "$1" bent.mcf
    printf X | dd of=bent.mcf bs=1 seek="$((offset + 3))" conv=notrunc 2>/dev/null
}
bend model.mcf model.layers.0.q_proj.weight
coffer check --full bent.mcf | hide
bend "$DATA/compat/mcf/checksums-0.1.mcf" third
coffer check --full bent.mcf | hide
coffer get bent.mcf third 2>&1 | hide
