# SPDX-License-Identifier: Apache-2.0
"""Draws pictures like a camera's, 320x240, with digits in them, for train_detector.py.

    pictures = CameraDigits(held_out=False)
    image, classes, boxes = pictures.draw(number)     # uint8 [240][320][3]; boxes as x1, y1, x2, y2

The same number always gives the same picture. Digits are handwritten (scikit-learn's 8x8 images, made
smooth) or printed (fonts of Debian). Held-out pictures have only handwriting and fonts that pictures
for training never have. What is no digit: letters, lines, shapes, texture, shadows. Then the lens and
the sensor: blur, noise, contrast, JPEG.
"""
import io
import os

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

SEED = 7
WIDTH, HEIGHT = 320, 240
FONTS = "/usr/share/fonts/truetype"
TRAINED_FONTS = ["dejavu/DejaVuSans.ttf", "dejavu/DejaVuSans-Bold.ttf", "dejavu/DejaVuSansMono.ttf",
                 "dejavu/DejaVuSerif.ttf", "dejavu/DejaVuSerif-Bold.ttf",
                 "liberation/LiberationSans-Regular.ttf", "liberation/LiberationSans-Bold.ttf",
                 "liberation/LiberationMono-Regular.ttf", "liberation/LiberationMono-Bold.ttf",
                 "liberation/LiberationSans-BoldItalic.ttf"]
HELD_OUT_FONTS = ["liberation/LiberationSerif-Regular.ttf", "liberation/LiberationSerif-Bold.ttf",
                  "dejavu/DejaVuSansMono-Bold.ttf"]
LETTERS = "ACEFHJKLMNPRUVWXYadefhkmnprtuvwxy&%?+"  # none that some hand writes like a digit
GLYPH = 64  # side of a glyph before it is placed
LEAST = 18, 24  # least height in pixels of printed digits, of handwritten ones
DISTINCT = 55  # least difference of brightness between a digit and what is behind it


def tight(mask):
    """The mask without its empty borders."""
    rows, columns = np.flatnonzero(mask.max(1) > 60), np.flatnonzero(mask.max(0) > 60)
    return mask[rows[0]:rows[-1] + 1, columns[0]:columns[-1] + 1]


def smooth_noise(rng, cells):
    """Noise from 0 to 1 over the picture, of about so many cells across."""
    small = rng.random((max(2, cells * 3 // 4), max(2, cells)), dtype=np.float32)
    return np.asarray(Image.fromarray(small).resize((WIDTH, HEIGHT), Image.BICUBIC))


class CameraDigits:
    def __init__(self, held_out):
        digits = load_digits()
        train_x, held_x, train_y, held_y = train_test_split(
            digits.images, digits.target, test_size=0.25, random_state=SEED, stratify=digits.target)
        self.stream = int(held_out)
        images, self.classes = (held_x, held_y) if held_out else (train_x, train_y)
        self.images = [Image.fromarray((i * 15.9).astype(np.uint8)).resize((GLYPH, GLYPH), Image.BICUBIC)
                       for i in images]
        self.fonts = [ImageFont.truetype(os.path.join(FONTS, f), GLYPH)
                      for f in (HELD_OUT_FONTS if held_out else TRAINED_FONTS)]
        self.noise = np.random.default_rng((SEED, self.stream)).standard_normal(1 << 21, np.float32)

    # ---- glyphs: uint8 masks ----

    def handwritten(self, rng):
        k = rng.integers(len(self.images))
        value = np.asarray(self.images[k], np.float32) / 255
        edge, soft = rng.uniform(0.42, 0.62), rng.uniform(0.08, 0.2)
        mask = np.clip((value - edge) / soft + 0.5, 0, 1) * 255
        return int(self.classes[k]), tight(mask.astype(np.uint8))

    @staticmethod
    def printed(font, text):
        left, top, right, bottom = font.getbbox(text)
        image = Image.new("L", (right - left + 8, bottom - top + 8))
        ImageDraw.Draw(image).text((4 - left, 4 - top), text, 255, font=font)
        return tight(np.asarray(image))

    @staticmethod
    def bent(rng, mask, height, angle, shear):
        """The mask at this height in pixels, turned by an angle and sheared."""
        h, w = mask.shape
        scale = height / h
        stretch = scale * rng.uniform(0.85, 1.15)
        c, s = np.cos(angle), np.sin(angle)
        forth = np.array([[c, -s], [s, c]]) @ np.array([[1, shear], [0, 1]]) @ np.diag([stretch, scale])
        corners = forth @ np.array([[-w, w, -w, w], [-h, -h, h, h]]) / 2
        size = np.ceil(corners.max(1) - corners.min(1)).astype(int) + 4
        back = np.linalg.inv(forth)
        offset = np.array([w, h]) / 2 - back @ (size / 2)
        if scale < 0.5:  # no stripes: average first what becomes smaller
            mask = np.asarray(Image.fromarray(mask).filter(ImageFilter.GaussianBlur(float(0.35 / scale))))
        image = Image.fromarray(mask).transform(
            tuple(size), Image.AFFINE, (*back[0], offset[0], *back[1], offset[1]), Image.BILINEAR)
        return tight(np.asarray(image)) if np.asarray(image).max() > 60 else None

    # ---- what is behind the digits ----

    @staticmethod
    def background(rng):
        low, high = np.sort(rng.uniform(20, 235, 2))
        colour = rng.uniform(low, high, 3) * 0.3 + rng.uniform(low, high) * 0.7
        image = np.empty((HEIGHT, WIDTH, 3), np.float32)
        image[:] = colour
        if rng.random() < 0.7:
            image += (smooth_noise(rng, 3) - 0.5)[..., None] * (rng.uniform(0, 110) * rng.uniform(0.6, 1, 3)).astype(np.float32)
        if rng.random() < 0.5:
            image += ((smooth_noise(rng, int(rng.integers(8, 60))) - 0.5) * rng.uniform(0, 50))[..., None]
        return np.clip(image, 0, 255, out=image)

    @staticmethod
    def clutter(rng, image):
        """Lines, boxes, ellipses and curves: things on a desk."""
        canvas = Image.fromarray(image.astype(np.uint8))
        draw = ImageDraw.Draw(canvas)
        for _ in range(rng.integers(0, 9)):
            x, y = rng.uniform(-40, WIDTH + 40), rng.uniform(-40, HEIGHT + 40)
            w, h = np.exp(rng.uniform(np.log(8), np.log(200), 2))
            colour = tuple(int(v) for v in rng.uniform(0, 255) * 0.6 + rng.uniform(0, 255, 3) * 0.4)
            width = int(rng.integers(1, 7))
            kind = rng.integers(6)
            if kind == 0:
                draw.line((x, y, x + rng.choice((-1, 1)) * w, y + rng.choice((-1, 1)) * h), colour, width)
            elif kind == 1:
                draw.polygon([(x + w * np.cos(a), y + h * np.sin(a)) for a in np.sort(rng.uniform(0, 6.3, 4))], colour)
            elif kind == 2:
                draw.ellipse((x, y, x + w, y + h), colour)
            elif kind == 3:
                draw.rectangle((x, y, x + w, y + h), colour)
            elif kind == 4:
                draw.rectangle((x, y, x + w, y + h), None, colour, width)
            else:
                draw.arc((x, y, x + w, y + h), rng.uniform(0, 180), rng.uniform(180, 300), colour, width)
        return np.asarray(canvas, np.float32)

    @staticmethod
    def paper(rng, image, taken, x, y, w, h, angle):
        """A sheet or a plate under a row of digits."""
        c, s = np.cos(angle), np.sin(angle)
        grow = rng.uniform(0.1, 0.5) * min(w, h)
        corners = [(x + c * a - s * b, y + s * a + c * b) for a, b in
                   ((-w / 2 - grow, -h / 2 - grow), (w / 2 + grow, -h / 2 - grow),
                    (w / 2 + grow, h / 2 + grow), (-w / 2 - grow, h / 2 + grow))]
        low, high = np.min(corners, 0), np.max(corners, 0)
        if any((t[:2] < high).all() and (t[2:] > low).all() for t in taken):
            return image  # it would hide a digit
        canvas = Image.fromarray(image.astype(np.uint8))
        light = rng.uniform(190, 250) if rng.random() < 0.7 else rng.uniform(15, 160)
        colour = tuple(int(v) for v in np.clip(light + rng.uniform(-25, 25, 3), 0, 255))
        edge = tuple(int(v) for v in rng.uniform(0, 255, 3)) if rng.random() < 0.4 else None
        ImageDraw.Draw(canvas).polygon(corners, colour, edge)
        return np.asarray(canvas, np.float32)

    # ---- putting them in ----

    @staticmethod
    def ink(rng, behind):
        """A colour that can be told from what is behind."""
        light = behind.mean()
        room = [(0, light - DISTINCT), (light + DISTINCT, 255)]
        sizes = np.array([max(0, high - low) for low, high in room])
        low, high = room[rng.choice(2, p=sizes / sizes.sum())]
        colour = rng.uniform(low, high) + rng.uniform(-30, 30, 3) * (rng.random() < 0.6)
        colour += rng.uniform(low, high) - colour.mean() if abs(colour.mean() - light) < DISTINCT else 0
        return np.clip(colour, 0, 255)

    @staticmethod
    def put(image, mask, x, y, colour, opacity):
        h, w = mask.shape
        part = image[y:y + h, x:x + w]
        alpha = mask[..., None].astype(np.float32) * (opacity / 255)
        part += alpha * (colour - part)

    def place(self, rng, image, taken, mask, x, y, colour=None):
        """Puts a glyph around x, y if there is room. Return: its box, or None."""
        h, w = mask.shape
        x, y = int(x - w / 2), int(y - h / 2)
        box = np.array([x, y, x + w, y + h], np.float32)
        if x < 1 or y < 1 or x + w >= WIDTH or y + h >= HEIGHT or any(
                min(box[2], t[2]) - max(box[0], t[0]) > 0.08 * min(w, t[2] - t[0]) and
                min(box[3], t[3]) - max(box[1], t[1]) > 0.08 * min(h, t[3] - t[1]) for t in taken):
            return None
        behind = image[y:y + h, x:x + w]
        if colour is None or abs(colour.mean() - behind.mean()) < DISTINCT:
            colour = self.ink(rng, behind)
        self.put(image, mask, x, y, colour, rng.uniform(0.8, 1))
        taken.append(box)
        return box

    def glyph(self, rng, font):
        """Return: class, mask. font: None for handwriting."""
        if font is None:
            return self.handwritten(rng)
        k = int(rng.integers(10))
        return k, self.printed(font, str(k))

    def font(self, rng):
        return None if rng.random() < 0.5 else self.fonts[rng.integers(len(self.fonts))]

    def row(self, rng, image, taken, found):
        """Some digits beside each other, as a number is written."""
        count = int(rng.integers(2, 7))
        angle, shear, font = rng.normal(0, 0.1), rng.normal(0, 0.08), self.font(rng)
        height = np.exp(rng.uniform(np.log(LEAST[font is None]), np.log(min(100, 330 / count))))
        step = height * rng.uniform(0.75, 1.0)
        reach = step * (count - 1) / 2
        x = rng.uniform(min(160, reach + height / 2), max(160, WIDTH - reach - height / 2))
        y = rng.uniform(height * 0.7, HEIGHT - height * 0.7)
        if rng.random() < 0.6:
            image = self.paper(rng, image, taken, x, y, step * count, height, angle)
        colour = None
        for k in range(count):
            label, mask = self.glyph(rng, font)
            mask = self.bent(rng, mask, height, angle + rng.normal(0, 0.04), shear)
            along = step * (k - (count - 1) / 2)
            if mask is None:
                continue
            at = x + along * np.cos(angle), y + along * np.sin(angle)
            if colour is None:
                colour = self.ink(rng, image[int(np.clip(at[1], 0, HEIGHT - 1)), int(np.clip(at[0], 0, WIDTH - 1))])
            box = self.place(rng, image, taken, mask, *at, colour=colour)
            if box is not None:
                found.append((label, box))
        return image

    def single(self, rng, image, taken, found, letters):
        """A glyph somewhere: a digit, or a letter, which nobody looks for."""
        font = self.fonts[rng.integers(len(self.fonts))] if letters else self.font(rng)
        height = np.exp(rng.uniform(np.log(LEAST[font is None]), np.log(110)))
        if letters:
            label, mask = None, self.printed(font, LETTERS[rng.integers(len(LETTERS))])
        else:
            label, mask = self.glyph(rng, font)
        mask = self.bent(rng, mask, height, rng.normal(0, 0.15), rng.normal(0, 0.1))
        if mask is not None:
            box = self.place(rng, image, taken, mask, rng.uniform(0, WIDTH), rng.uniform(0, HEIGHT))
            if box is not None and label is not None:
                found.append((label, box))

    def camera(self, rng, image):
        """Light, lens, sensor, compression. Changes the image."""
        if rng.random() < 0.5:
            image *= (1 + (smooth_noise(rng, 2) - 0.5) * rng.uniform(0, 0.6))[..., None]
        contrast = rng.uniform(0.65, 1.1)
        image *= contrast
        image += 128 * (1 - contrast) + rng.uniform(-25, 25)
        picture = Image.fromarray(np.clip(image, 0, 255, out=image).astype(np.uint8))
        if rng.random() < 0.7:
            picture = picture.filter(ImageFilter.GaussianBlur(rng.uniform(0.2, 1.1)))
        first = rng.integers(len(self.noise) - image.size)
        image = self.noise[first:first + image.size].reshape(image.shape) * np.float32(rng.uniform(0.5, 9))
        image += np.asarray(picture)
        picture = Image.fromarray(np.clip(image, 0, 255, out=image).astype(np.uint8))
        if rng.random() < 0.6:
            file = io.BytesIO()
            picture.save(file, "JPEG", quality=int(rng.integers(45, 95)))
            picture = Image.open(file)
        return np.asarray(picture)

    def draw(self, number):
        rng = np.random.default_rng((SEED, self.stream, number))
        image, taken, found = self.clutter(rng, self.background(rng)), [], []
        for _ in range(rng.integers(0, 3)):
            image = np.array(self.row(rng, image, taken, found))
        for _ in range(rng.integers(0, 6)):
            self.single(rng, image, taken, found, letters=False)
        for _ in range(rng.integers(0, 7) if rng.random() < 0.5 else 0):
            self.single(rng, image, taken, found, letters=True)
        return (self.camera(rng, image), np.array([c for c, _ in found], np.int64),
                np.array([b for _, b in found], np.float32).reshape(-1, 4))
