# Every file of a folder is packed or named, whatever its extension.
mkdir in
for kind in jpg png webp gif bmp tiff ppm; do
    cp "$DATA/media/small.$kind" in/
done
cp "$DATA/media/small.png" in/without-extension
cp "$DATA/media/tone.mp3" "$DATA/media/header.m4a" in/
echo notes >in/readme.txt
: >in/.hidden
coffer pack in out.mldf | sed 's/, [0-9.]* [KM]iB//'
coffer pack in out.mldf --force --json >report.json
echo "exit $?"
grep -o "\"found\".*\"complete\":[a-z]*"
coffer get out.mldf --field path
echo "# all have the same pixels, except the JPEG"
for i in 0 1 3 4 5 6 7; do
    coffer get out.mldf $i.image --as npy | tail -c 144 | cksum
done | sort | uniq -c | sed 's/^ *//'
echo "# left out on purpose"
coffer pack in out.mldf --force --exclude '*.mp3' --exclude '*.m4a' --exclude readme.txt | sed 's/, [0-9.]* [KM]iB//'
coffer pack in out.mldf --force --kind images >/dev/null
echo "exit $?"
echo "# strict"
coffer pack in strict.mldf --strict
echo "exit $?"
cp "$DATA/media/animated.gif" in/
coffer pack in strict.mldf --strict --kind images
echo "exit $?"
rm in/animated.gif
echo "# sounds"
mkdir sounds
cp "$DATA"/media/tone.* "$DATA"/media/header.m4a "$DATA"/media/header.aac "$DATA"/media/ramp.flac "$DATA"/media/float.wav sounds/
coffer pack sounds sounds.mldf | sed 's/, [0-9.]* [KM]iB//'
coffer get sounds.mldf ..
for i in 5 6; do
    coffer get sounds.mldf $i.audio -o x.npy --force && tail -c 16000 x.npy | wc -c
done
echo "# damaged ones, links"
mkdir broken
cp "$DATA/media/small.png" broken/b.png
head -c 40 "$DATA/media/small.png" >broken/a.png
head -c 40 "$DATA/media/small.png" >broken/d.png
ln -s nowhere broken/c.png
coffer pack broken r.mldf --keep-going --json | grep -o "\"found\".*\"complete\":[a-z]*"
echo "exit $?"
