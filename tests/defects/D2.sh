# The EXIF orientation survives everything that decodes a picture: the pixels are turned.
mkdir in
cp "$DATA/media/turned.jpg" in/
coffer pack in kept.mldf >/dev/null
coffer get kept.mldf 0.image | cmp - in/turned.jpg && echo "stored as it is, with its tag"
shape() { # of an .npy file
    head -c 128 "$1" | tr -d '\0' | grep -ao "'shape': ([0-9, ]*)"
}
coffer get kept.mldf 0.image -o x.npy && shape x.npy
coffer get kept.mldf 0.image -o x.png
od -An -tu1 -j16 -N8 x.png
for options in "--raw" "--jpeg-quality 90" "--max-size 32" "--raw --max-size 32"; do
    echo "# $options"
    coffer pack in out.mldf --force $options | sed 's/, [0-9.]* [KM]iB//'
    coffer get out.mldf 0.image --json | tr , '\n' | grep -E 'width|height'
    coffer get out.mldf 0.image --as npy >y.npy
    shape y.npy
done
coffer pack in raw.mldf --raw >/dev/null
coffer get raw.mldf 0.image --as npy | cmp - x.npy && echo "the same pixels"
