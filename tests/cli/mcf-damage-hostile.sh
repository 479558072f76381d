# Records of damage in a malicious file cost a bounded number of passes over it.
python3 - <<'END'
import struct, zlib


def found(config, begin, size):
    return zlib.crc32(config[begin : begin + size]) if size == 1 << 20 else 0


def section_file(path, records):
    config = b'{"a": "' + b"x" * (4 << 20) + b'"}'
    strings = b"config.json"
    damage = struct.pack("<IIII", 1, len(records), len(strings), 0)
    damage += b"".join(struct.pack("<IIIIQQII", 0, 11, 0x100, 2, begin, size, 0, found(config, begin, size)) for begin, size in records) + strings
    at, parts = 40, []
    body = b""
    for kind, data in ((0x100, config), (0x434B0004, damage)):
        body += bytes(-(40 + len(body)) % 8)
        parts.append((kind, 1, 40 + len(body), len(data)))
        body += data
    body += bytes(-(40 + len(body)) % 8)
    directory = b"".join(struct.pack("<IIQQ", *part) for part in parts)
    size = 40 + len(body) + len(directory)
    head = b"MCF\0" + struct.pack("<HHIIQQQ", 1, 1, 40, len(parts), 40 + len(body), size, 0)
    with open(path, "wb") as out:
        out.write(head + body + directory)


section_file("many.mcf", [(i, 4 << 20) for i in range(100000)])
section_file("few.mcf", [(i << 20, 1 << 20) for i in range(4)])
END
for file in few many; do
    for words in "info $file.mcf" "check --full $file.mcf" "compact $file.mcf -o out-$file.mcf --damaged keep"; do
        timeout 20 coffer $words >out 2>&1
        echo "$? $words"
        grep -o 'Damage lists.*\|on were saved.*' out | sort | uniq -c | sed 's/^ *//'
    done
done
