# SPDX-License-Identifier: Apache-2.0
"""Writes picture files of the odd kinds that Pillow does not write: any PNG, EXIF, JPEG with edited bytes."""
import io
import struct
import zlib

GREY, RGB, PALETTE, GREY_ALPHA, RGBA = 0, 2, 3, 4, 6
CHANNELS = {GREY: 1, RGB: 3, PALETTE: 1, GREY_ALPHA: 2, RGBA: 4}
DEPTHS = {GREY: (1, 2, 4, 8, 16), RGB: (8, 16), PALETTE: (1, 2, 4, 8), GREY_ALPHA: (8, 16), RGBA: (8, 16)}
ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _row(samples, depth):
    if depth == 16:
        return b"\0" + struct.pack(">%dH" % len(samples), *samples)
    if depth == 8:
        return b"\0" + bytes(samples)
    bits = "".join(format(v, "0%db" % depth) for v in samples)
    return b"\0" + bytes(int(bits[i:i + 8].ljust(8, "0"), 2) for i in range(0, len(bits), 8))


def png(width, height, kind, depth, rng, interlaced=False, before=b"", after=b""):
    """A PNG of random samples; before, after: more chunks, before PLTE and IDAT and behind."""
    n = CHANNELS[kind]
    pixels = [[[rng.randrange(1 << depth) for _ in range(n)] for _ in range(width)] for _ in range(height)]
    rows = []
    for x0, y0, dx, dy in ADAM7 if interlaced else ((0, 0, 1, 1),):
        for row in pixels[y0::dy] if width > x0 else ():
            rows.append(_row([v for p in row[x0::dx] for v in p], depth))
    palette = bytes(rng.randrange(256) for _ in range(3 << depth)) if kind == PALETTE else b""
    return (b"\x89PNG\r\n\x1a\n" +
            chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, int(interlaced))) + before +
            (chunk(b"PLTE", palette) if palette else b"") + chunk(b"IDAT", zlib.compress(b"".join(rows))) + after +
            chunk(b"IEND", b""))


def put_chunk(data, at, new):
    """@at: the kind of the chunk before which @new is put."""
    where = data.index(at) - 4
    return data[:where] + new + data[where:]


def exif(orientation, order="<", kind=3, count=1, entries=1, offset=8):
    """A directory whose last entry is the orientation, after others."""
    value = struct.pack(order + ("I" if kind == 4 else "HH"), orientation, *(() if kind == 4 else (0,)))
    entry = struct.pack(order + "HHI", 0x0112, kind, count) + value
    other = struct.pack(order + "HHII", 0x0100, 4, 1, 640)
    return ((b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "I", offset) + bytes(offset - 8) +
            struct.pack(order + "H", entries) + other * (entries - 1) + entry + bytes(4))


def segment(marker, data):
    return b"\xff" + bytes((marker,)) + struct.pack(">H", len(data) + 2) + data


def with_exif(jpeg, tiff):
    return jpeg[:2] + segment(0xe1, b"Exif\0\0" + tiff) + jpeg[2:]


def jpeg(image, **how):
    out = io.BytesIO()
    image.save(out, "JPEG", **{"quality": 90, **how})
    return out.getvalue()


def markers(data):
    """[(marker, where)] of a JPEG, restart markers included."""
    found, at = [], 0
    while at < len(data) - 1:
        if data[at] == 0xff and data[at + 1] not in (0, 0xff):
            found.append((data[at + 1], at))
            plain = data[at + 1] in (0xd8, 0xd9, 0x01) or 0xd0 <= data[at + 1] <= 0xd7
            at += 2 if plain else 2 + struct.unpack(">H", data[at + 2:at + 4])[0]
        else:
            at += 1
    return found


def _scan(data):
    """Return: a JPEG's bytes before its entropy-coded data, and these."""
    start = dict(markers(data))[0xda]
    end = start + 2 + struct.unpack(">H", data[start + 2:start + 4])[0]
    return data[:end], data[end:-2]


def restarted(whole, strips, stray=b""):
    """A JPEG with a restart marker after each strip, and @stray before it. @whole: of the picture; @strips: JPEGs of its rows of
    MCUs, by the same tables; @whole gives the header."""
    head, _ = _scan(whole)
    at = dict(markers(head))[0xda]
    data = b""
    for i, strip in enumerate(strips):
        data += (stray + bytes((0xff, 0xd0 + (i - 1) % 8)) if i else b"") + _scan(strip)[1]
    width = struct.unpack(">H", whole[dict(markers(head))[0xc0] + 7:][:2])[0]
    return head[:at] + segment(0xdd, struct.pack(">H", (width + 15) // 16)) + head[at:] + data + b"\xff\xd9"


def without(data, kinds):
    """Leaves out the segments of these markers."""
    out, places = b"", markers(data)
    for (marker, at), (_, end) in zip(places, places[1:] + [(0, len(data))]):
        out += b"" if marker in kinds else data[at:end]
    return out


def scans(parts, repeat=1):
    """Grey JPEGs of one size and one set of tables as the components of one JPEG, each in a scan of its own; the last one comes
    @repeat times."""
    first = parts[0]
    places = dict(markers(first))
    sof = first[places[0xc0] + 4:]
    frame = sof[:5] + bytes((len(parts),)) + b"".join(bytes((i + 1, 0x11, 0)) for i in range(len(parts)))
    out = without(first, (0xc0, 0xda, 0xd9)) + segment(0xc0, frame)
    for i, part in enumerate(parts):
        scan = segment(0xda, bytes((1, i + 1, 0x00, 0, 63, 0))) + _scan(part)[1]
        out += scan * (repeat if i == len(parts) - 1 else 1)
    return out + b"\xff\xd9"
