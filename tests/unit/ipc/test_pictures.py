#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Pictures of all kinds as pipectl and piped-http read them, against Pillow: PNG exactly, JPEG within 3, since another libjpeg
may round its transforms and colours otherwise. Then pictures that are cut or damaged, and what is said of them.

usage: test_pictures.py PICTURE_RUN
"""
import io
import os
import random
import re
import shlex
import struct
import subprocess
import sys
import tempfile
import warnings

import picture_files as files

try:
    import numpy as np
    from PIL import Image, ImageOps
except ImportError as e:
    print("skipped: %s" % e)
    sys.exit(77)

SEED = int(os.environ.get("PIPED_TEST_SEED", random.randrange(1 << 30)))
R = random.Random(SEED)
SHARE = max(1, int(os.environ.get("PIPED_TEST_SHARE", "1")))
NEAR = 3  # of a JPEG
SIZES = ((1, 1), (3, 5), (8, 8), (33, 20))
warnings.simplefilter("ignore")  # Pillow's, of transparent palettes


def check(condition, *text):
    if not condition:
        raise AssertionError(" ".join(str(t) for t in text + ("seed", SEED)))


def read_all(cases):
    """cases: {name: bytes}. Return: {name: pixels or the reason}"""
    found, names = {}, list(cases)
    with tempfile.TemporaryDirectory() as folder:
        for i, name in enumerate(names):
            with open(os.path.join(folder, "%d" % i), "wb") as f:
                f.write(cases[name])
        emulator = shlex.split(os.environ.get("MESON_EXE_WRAPPER", ""))
        r = subprocess.run(emulator + [sys.argv[1]] + [os.path.join(folder, "%d" % i) for i in range(len(names))],
                           stdout=subprocess.PIPE, check=True)
    out = io.BytesIO(r.stdout)
    for name in names:
        line = out.readline().decode().strip()
        check(line[:3] in ("ok ", "no "), name, line)
        if line.startswith("ok"):
            width, height, channels = map(int, line.split()[1:])
            data = out.read(width * height * channels)
            check(len(data) == width * height * channels, name, "too few pixels")
            found[name] = np.frombuffer(data, np.uint8).reshape(height, width, channels)
        else:
            found[name] = line[3:]
    return found


def by_pillow(data):
    with Image.open(io.BytesIO(data)) as im:
        if im.mode in ("I", "I;16"):  # 16 bits of grey, which convert() would cut off at 255
            im.load()
            im = Image.fromarray((np.asarray(im).astype(int) >> 8).astype(np.uint8)) if not im.getexif() else im
        return np.asarray(ImageOps.exif_transpose(im).convert("RGB"))


def compare(cases, most=0):
    for name, pixels in read_all(cases).items():
        check(not isinstance(pixels, str), name, pixels)
        want = by_pillow(cases[name])
        check(pixels.shape[:2] == want.shape[:2], name, pixels.shape, want.shape)
        off = np.abs(pixels.astype(int) - want).max()
        check(off <= most, name, "is off by", off)


def photo(width=61, height=45, seed=None):
    """Smooth, with noise: something that JPEG loses little of."""
    rng = np.random.default_rng(SEED if seed is None else seed)
    y, x = np.mgrid[0:height, 0:width]
    planes = [128 + 100 * np.sin(x / a + y / b) for a, b in ((9, 13), (17, 7), (11, 23))]
    return Image.fromarray(np.clip(np.stack(planes, -1) + rng.normal(0, 6, (height, width, 3)), 0, 255).astype(np.uint8))


def refused(cases, *parts):
    """parts: what each reason must contain, as regular expressions"""
    for name, why in read_all(cases).items():
        check(isinstance(why, str), name, "was accepted")
        for part in parts:
            check(re.search(part, why), name, "says", repr(why), "without", part)


# ---- PNG ----

def test_every_kind_of_png():
    cases = {}
    for kind, depths in files.DEPTHS.items():
        for depth in depths:
            for interlaced in (False, True):
                for size in SIZES[::SHARE]:
                    cases["kind %d depth %d %s %s" % (kind, depth, size, interlaced)] = files.png(*size, kind, depth, R, interlaced)
    compare(cases)


def test_filters_of_png():
    cases = {}
    for mode in ("RGB", "L", "LA", "RGBA", "P", "1"):
        for level in (0, 9):
            out = io.BytesIO()
            photo().convert(mode).save(out, "PNG", compress_level=level)
            cases["%s %d" % (mode, level)] = out.getvalue()
    compare(cases)


def test_colours_are_not_converted():
    import zlib
    from PIL import ImageCms
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("LAB")).tobytes()
    said = {"gAMA 1": files.chunk(b"gAMA", struct.pack(">I", 100000)), "gAMA 1/1.8": files.chunk(b"gAMA", struct.pack(">I", 55556)),
            "gAMA 0": files.chunk(b"gAMA", bytes(4)), "sRGB": files.chunk(b"sRGB", b"\0"),
            "cHRM": files.chunk(b"cHRM", struct.pack(">8I", 31270, 32900, 64000, 33000, 21000, 71000, 15000, 6000)),
            "iCCP": files.chunk(b"iCCP", b"p\0\0" + zlib.compress(profile)), "broken iCCP": files.chunk(b"iCCP", b"p\0\0xyz")}
    cases = {}
    for name, one in said.items():
        for kind, depth in ((0, 8), (0, 16), (2, 8), (2, 16), (3, 4), (4, 8), (6, 8), (6, 16)):
            state = R.getstate()
            cases["%s kind %d depth %d" % (name, kind, depth)] = data = files.png(9, 7, kind, depth, R, before=one)
            R.setstate(state)
            plain = files.png(9, 7, kind, depth, R)
            check(len(data) == len(plain) + len(one))
    got = read_all(cases)
    for name, data in cases.items():
        check(not isinstance(got[name], str), name, got[name])
        plain = data.replace(said[name[:name.index(" kind")]], b"")
        want = by_pillow(plain)
        check((got[name] == want[:, :, :got[name].shape[2]]).all(), name)
    compare({"sBIT": files.png(9, 7, 2, 8, R, before=files.chunk(b"sBIT", b"\5\6\5")),
             "bKGD": files.png(9, 7, 6, 8, R, before=files.chunk(b"bKGD", struct.pack(">3H", 255, 0, 0)))})


def test_transparency_is_dropped():
    trns = {0: struct.pack(">H", 3), 2: struct.pack(">3H", 1, 2, 3), 3: bytes(range(0, 255, 17))}
    cases = {}
    for kind, data in trns.items():
        for depth in (4, 8) if kind != 2 else (8, 16):
            whole = files.png(17, 6, kind, depth, R)
            cases["tRNS kind %d depth %d" % (kind, depth)] = files.put_chunk(whole, b"IDAT", files.chunk(b"tRNS", data))
    compare(cases)


# ---- EXIF ----

def turned(image, orientation):
    """What a camera stores so that it is @image when it is held as the tag says."""
    back = {2: Image.FLIP_LEFT_RIGHT, 3: Image.ROTATE_180, 4: Image.FLIP_TOP_BOTTOM, 5: Image.TRANSPOSE, 6: Image.ROTATE_90,
            7: Image.TRANSVERSE, 8: Image.ROTATE_270}.get(orientation)
    return image.transpose(back) if back is not None else image


def test_every_orientation():
    upright = photo(40, 24)
    jpegs, pngs, right = {}, {}, {}
    for o in range(1, 9):
        stored = turned(upright, o)
        for order in "<>":
            for kind in (3, 4):
                tiff, name = files.exif(o, order, kind, entries=3, offset=8 + 6 * (kind == 4)), "%d %s %d" % (o, order, kind)
                for mode in ("RGB", "L", "CMYK"):
                    jpegs["JPEG %s %s" % (mode, name)] = files.with_exif(files.jpeg(stored.convert(mode)), tiff)
                out = io.BytesIO()
                stored.save(out, "PNG")
                extra = files.chunk(b"eXIf", tiff)
                pngs["PNG before " + name] = files.put_chunk(out.getvalue(), b"IDAT", extra)
                pngs["PNG behind " + name] = files.put_chunk(out.getvalue(), b"IEND", extra)
        pngs["interlaced %d" % o] = files.png(19, 11, 2, 8, R, True, before=files.chunk(b"eXIf", files.exif(o)))
        pngs["palette %d" % o] = files.png(19, 11, 3, 2, R, before=files.chunk(b"eXIf", files.exif(o, ">")))
        pngs["bits %d" % o] = files.png(19, 11, 0, 1, R, before=files.chunk(b"eXIf", files.exif(o)))
        right[o] = read_all({"p": pngs["PNG before %d < 3" % o]})["p"]
        check((right[o] == np.asarray(upright)).all(), "orientation", o)
    compare(jpegs, NEAR)
    compare(pngs)


def test_other_exif_leaves_it_as_it_is():
    image = photo(40, 24)
    plain = files.jpeg(image)
    good = files.exif(6)
    odd = {"value 0": files.exif(0), "value 9": files.exif(9), "value 65535": files.exif(65535), "two": files.exif(6, count=2),
           "text": files.exif(6, kind=2), "a fraction": files.exif(6, kind=5), "empty": b"", "short": good[:7],
           "other order": b"II" + files.exif(6, ">")[2:], "behind": good[:4] + struct.pack("<I", 0xffffffff) + good[8:],
           "at the end": good[:4] + struct.pack("<I", len(good) - 1) + good[8:],
           "many entries": good[:8] + b"\xff\xff" + bytes(12), "large": files.exif(0x10006, kind=4)}
    for length in range(len(good) - 4):  # the last four bytes say that no other directory follows
        odd["cut at %d" % length] = good[:length]
    got = read_all({**{k: files.with_exif(plain, v) for k, v in odd.items()}, "plain": plain,
                    "second": files.with_exif(files.with_exif(plain, files.exif(6)), files.exif(1)),
                    "other APP1": files.with_exif(plain, files.exif(6)).replace(b"Exif\0", b"http:"),
                    "header": plain[:2] + files.segment(0xe1, b"Exif\0\0") + files.segment(0xe1, b"") + plain[2:]})
    for name, pixels in got.items():
        check(not isinstance(pixels, str) and (pixels == got["plain"]).all(), name, pixels)
    compare({"first of two": files.with_exif(files.with_exif(plain, files.exif(1)), files.exif(8))}, NEAR)
    scans = files.jpeg(image.convert("CMYK"), progressive=True)
    at = [at for marker, at in files.markers(scans) if marker == 0xda][1]
    late = scans[:at] + files.with_exif(b"", files.exif(6)) + scans[at:]
    got = read_all({"late": late, "scans": scans})
    check((got["late"] == got["scans"]).all(), "EXIF between scans")
    one, state = files.chunk(b"eXIf", files.exif(6)), R.getstate()
    broken = files.png(9, 7, 2, 8, R, before=one[:-1] + bytes((one[-1] ^ 1,)))
    R.setstate(state)
    got = read_all({"broken": broken, "plain": files.png(9, 7, 2, 8, R)})
    check((got["broken"] == got["plain"]).all(), "PNG with a wrong sum of eXIf")


# ---- JPEG ----

def test_kinds_of_jpeg():
    cases = {}
    for size in ((1, 1), (8, 8), (17, 33), (61, 45)):
        image = photo(*size)
        for sampling in (0, 1, 2):
            for progressive in (False, True):
                name = "%dx%d %d %s" % (*size, sampling, progressive)
                cases[name] = files.jpeg(image, subsampling=sampling, progressive=progressive)
        cases["grey %dx%d" % size] = files.jpeg(image.convert("L"))
        cases["CMYK %dx%d" % size] = files.jpeg(image.convert("CMYK"))
        cases["CMYK progressive %dx%d" % size] = files.jpeg(image.convert("CMYK"), progressive=True)
    cmyk = files.jpeg(photo().convert("CMYK"), quality=95)
    adobe = cmyk.index(b"Adobe")
    cases["YCCK"] = cmyk[:adobe + 11] + b"\2" + cmyk[adobe + 12:]
    cases["CMYK without a word of Adobe"] = files.without(cmyk, (0xee,))
    rgb = files.jpeg(photo(), subsampling=0)
    cases["RGB"] = rgb[:2] + files.segment(0xee, b"Adobe\0\x64\0\0\0\0\0") + files.without(rgb[2:], (0xe0,))
    cases["no tables"] = files.without(files.jpeg(photo()), (0xc4,))  # motion JPEG
    cases["planes"] = files.scans([files.jpeg(p) for p in photo().split()])
    tables = dict(cases)
    del tables["no tables"]
    compare(tables, NEAR)
    got = read_all({"with": files.jpeg(photo()), "without": cases["no tables"]})
    check(not isinstance(got["without"], str) and (got["with"] == got["without"]).all(), "motion JPEG", got["without"])
    refused({"two colours": files.scans([files.jpeg(p) for p in photo().split()[:2]])}, "2 colour components; convert it")


def strips_of(image):
    rows = [image.crop((0, y, image.width, min(y + 16, image.height))) for y in range(0, image.height, 16)]
    return files.jpeg(image), [files.jpeg(row) for row in rows]


def test_stray_bytes_before_markers():
    """As Logitech's C270, C910 and others send them: what libjpeg skips takes no pixel away."""
    whole, strips = strips_of(photo(64, 80))
    right = files.restarted(whole, strips)
    cases = {"restart %s" % s.hex(): files.restarted(whole, strips, s) for s in (b"\x12\0", b"\0", b"\x55" * 40, b"\0" * 5000)}
    for kind in (0xdb, 0xc0, 0xc4, 0xda, 0xd9):
        at = dict(files.markers(right))[kind]
        cases["before %02x" % kind] = right[:at] + b"\x12\x34" + right[at:]
    cases["behind"] = right + b"\0" * 100
    got = read_all({"right": right, **cases})
    for name, pixels in got.items():
        check(not isinstance(pixels, str) and (pixels == got["right"]).all(), name, pixels)
    compare({"right": right}, NEAR)


def rows_of(why):
    found = re.search(r"cut short: (\d+) of (\d+) rows", why)
    check(found, "the reason is", repr(why))
    return int(found[1]), int(found[2])


def test_files_that_are_cut():
    image = photo(64, 80)
    out = io.BytesIO()
    image.save(out, "PNG")
    png, jpeg = out.getvalue(), files.jpeg(image)
    whole, strips = strips_of(image)
    start = dict(files.markers(jpeg))[0xda] + 14
    ppm = b"P6\n64 80\n255\n" + image.tobytes()
    for name, data, first in (("PNG", png, png.index(b"IDAT") + 8), ("JPEG", jpeg, start), ("PPM", ppm, 13)):
        last = -1
        for share in (0, 0.2, 0.5, 0.9):
            cut = data[:first + int((len(data) - 40 - first) * share)]
            rows, height = rows_of(read_all({name: cut})[name])
            check(height == 80 and last <= rows < 80 and rows >= 80 * share - 33, name, share, rows, last)
            last = rows
        for at in range(9, first - 14, max(1, first // 40)):
            refused({"%s cut at %d" % (name, at): data[:at]} if name != "PPM" else {}, "cut short before its picture begins")
    # cameras end what they cut
    rows, height = rows_of(read_all({"x": jpeg[:len(jpeg) // 2] + b"\xff\xd9"})["x"])
    check(height == 80 and 0 < rows < 60, rows)
    rows, height = rows_of(read_all({"x": files.restarted(whole, strips[:3])})["x"])
    check(height == 80 and 16 <= rows <= 48, rows)
    # a strip is lost: the rest would be in wrong places
    refused({"lost": files.restarted(whole, strips[:1] + [strips[1][:-40] + b"\xff\xd9"] + strips[2:])}, r"of 80 rows")


def test_ends_that_were_never_written():
    """Zeros, as after a power cut, decode as well; a flat picture may be made of them."""
    image = photo(320, 240)
    cases = {}
    for quality in (60, 92):
        data = files.jpeg(image, quality=quality)
        for share in (0.2, 0.5, 0.8):
            for more in (1, 2):
                half = data[:int(len(data) * share)]
                cases["%d %g %d" % (quality, share, more)] = half + bytes(more * len(data) - len(half))
    for name, why in read_all(cases).items():
        rows, height = rows_of(why) if isinstance(why, str) else (0, 0)
        check(height == 240 and rows < 240 * float(name.split()[1]) + 33, name, why if isinstance(why, str) else "was accepted")
    data = files.jpeg(image, progressive=True)
    refused({"progressive": data[:len(data) // 2] + bytes(len(data))}, "cut short|damaged")
    flat = files.jpeg(Image.new("RGB", (640, 480)), optimize=True)
    compare({"flat": flat, "zeros behind": files.jpeg(image) + bytes(9999)}, NEAR)


def test_whole_pictures_without_an_end():
    image = photo(64, 80)
    planes = files.scans([files.jpeg(p) for p in image.split()])
    cases = {"JPEG": files.jpeg(image), "grey": files.jpeg(image.convert("L")), "progressive": files.jpeg(image, progressive=True),
             "planes": planes, "flat": files.jpeg(Image.new("RGB", (640, 480)), optimize=True)}
    got = read_all({**{"no end " + k: v[:-2] for k, v in cases.items()}, **cases})
    for name in cases:
        check((got["no end " + name] == got[name]).all(), name, got["no end " + name])
    out = io.BytesIO()
    image.save(out, "PNG")
    compare({"PNG": out.getvalue()[:-12], "PNG and rubbish": out.getvalue() + b"\0" * 9,
             "sum of the end": out.getvalue()[:-1] + b"\0"})
    second = [at for marker, at in files.markers(planes) if marker == 0xda][1]
    refused({"plane": planes[:second], "plane and an end": planes[:second] + b"\xff\xd9"}, "cut short: scans after 1")
    data = cases["progressive"]
    scans = [at for marker, at in files.markers(data) if marker == 0xda]
    refused({"scan %d" % i: data[:at] for i, at in enumerate(scans[1:])}, "cut short: scans after")
    refused({"in scan": data[:(scans[3] + scans[4]) // 2]}, r"cut short: \d+ of 80 rows of scan 4")


def test_damaged_files():
    image = photo(64, 80)
    out = io.BytesIO()
    image.save(out, "PNG")
    png = out.getvalue()
    at = png.index(b"IDAT") + len(png) // 2
    refused({"PNG": png[:at] + bytes((png[at] ^ 0x55,)) + png[at + 1:]}, r"of 80 rows")
    refused({"PNG's sum": png[:-20] + bytes((png[-20] ^ 0x55,)) + png[-19:]}, "of 80 rows")
    whole, strips = strips_of(image)
    jpeg = files.restarted(whole, strips)
    refused({"JPEG": jpeg.replace(b"\xff\xd1", b"\xff\xd5")}, r"damaged after \d+ of 80 rows: .*marker 0xd5 instead of RST1")


def test_limits_are_named():
    def sized(width, height):
        data = bytearray(files.png(2, 2, 2, 8, R))
        data[8:33] = files.chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
        return bytes(data)
    large = bytearray(files.jpeg(photo()))
    at = dict(files.markers(bytes(large)))[0xc0]
    large[at + 5:at + 9] = struct.pack(">HH", 20000, 30000)
    refused({"PNG": sized(20000, 20000), "wide": sized(16385, 1), "JPEG": bytes(large), "PPM": b"P6 16385 1 255\n" + bytes(50000),
             "none": b"P6 0 1 255\n "}, r"the picture has \d+x\d+ pixels; width and height may be 1 to 16384")
    refused({"maxval": b"P5 1 1 65535\n\0\0\0"}, "maxval of 65535", "convert FILE")
    planes = [files.jpeg(p) for p in photo().split()]
    compare({"90 scans": files.scans(planes, 88)}, NEAR)
    refused({"scans": files.scans(planes, 200)}, "more than 100 scans")
    deep = bytearray(files.jpeg(photo()))
    deep[at + 4] = 12
    refused({"12 bits": bytes(deep)}, "precision 12; convert it")
    deep[at + 1], deep[at + 4] = 0xc3, 8
    refused({"lossless": bytes(deep)}, "0xc3; convert it")
    deep[at + 1] = 0xc9
    refused({"arithmetic": bytes(deep)}, "arithmetic coding; convert it")


def main():
    built = read_all({"JPEG": files.jpeg(photo()), "PNG": files.png(2, 2, 2, 8, R)})
    for kind, how in built.items():
        if isinstance(how, str) and "was built without" in how:
            print("skipped: %s" % how)
            sys.exit(77)
    print("seed", SEED)
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
            print("ok", name)


main()
