/* SPDX-License-Identifier: Apache-2.0 */
/* What a file that is not an ONNX model is instead. */
#include <strings.h>

#include "model/load_private.h"

struct magic {
    size_t at;
    const char *bytes;
    size_t count;
    const char *what;
};

#define MAGIC(at, text, what)                                                                      \
    {                                                                                              \
        at, text, sizeof(text) - 1, what                                                           \
    }

/* No ONNX file begins like these: its first byte is a field of ModelProto, mostly 8. */
static const struct magic magics[] = {
    MAGIC(0, "version https://git-lfs", "a pointer of git-lfs; fetch the file with git lfs pull"),
    MAGIC(0, "\xff\xd8\xff", "a JPEG picture"),
    MAGIC(0, "\x89PNG\r\n", "a PNG picture"),
    MAGIC(0, "GIF8", "a GIF picture"),
    MAGIC(8, "WEBP", "a WebP picture"),
    MAGIC(0, "BM", "a BMP picture"),
    MAGIC(0, "P5\n", "a PGM picture"),
    MAGIC(0, "P6\n", "a PPM picture"),
    MAGIC(0, "PK\3\4",
          "a ZIP archive, perhaps a checkpoint of PyTorch or Keras; export it to ONNX first"),
    MAGIC(0, "\x1f\x8b", "a gzip archive; unpack it first"),
    MAGIC(0, "BZh", "a bzip2 archive; unpack it first"),
    MAGIC(0,
          "\xfd"
          "7zXZ",
          "an xz archive; unpack it first"),
    MAGIC(0, "\x28\xb5\x2f\xfd", "a zstd archive; unpack it first"),
    MAGIC(0, "7z\xbc\xaf", "a 7z archive; unpack it first"),
    MAGIC(257, "ustar", "a tar archive; unpack it first"),
    MAGIC(4, "TFL3", "a TensorFlow Lite model; convert it with tf2onnx --tflite"),
    MAGIC(4, "ORTM",
          "a model in ONNX Runtime's own format; use the .onnx file that it was made of"),
    MAGIC(0, "\x89HDF", "an HDF5 file, perhaps of Keras; convert it with tf2onnx"),
    MAGIC(0, "\x93NUMPY", "a NumPy array"),
    MAGIC(0, "\x80\2", "a Python pickle, perhaps a checkpoint of PyTorch; export it to ONNX first"),
    MAGIC(0, "\x80\4", "a Python pickle, perhaps a checkpoint of PyTorch; export it to ONNX first"),
    MAGIC(0, "GGUF", "a GGUF model"),
    MAGIC(0, "ptrt", "an engine of TensorRT, which no other program reads"),
    MAGIC(0, "ftrt", "an engine of TensorRT, which no other program reads"),
    MAGIC(0, "RKNN", "an RKNN model; use the .onnx file that it was made of"),
    MAGIC(0, "7767517", "a network of ncnn; convert the original model to ONNX"),
    MAGIC(0,
          "\x7f"
          "ELF",
          "an ELF program or library"),
    MAGIC(0, "%PDF", "a PDF document"),
    MAGIC(0, "#!", "a script"),
    MAGIC(8, "{\"", "a safetensors file, which has weights only; export the model to ONNX"),
};

/* A beginning of a text, whatever its letters' case, after blanks. */
static bool begins(const char *text, size_t bytes, const char *with)
{
    size_t n = strlen(with);

    while (bytes > 0 && strchr(" \t\r\n", *text) && *text) {
        text++;
        bytes--;
    }
    return bytes >= n && strncasecmp(text, with, n) == 0;
}

/* Return: how many bytes the character at @text takes in a text of UTF-8; 0: texts have no such. */
static size_t character(const unsigned char *text, size_t bytes)
{
    size_t more = text[0] >= 0xf0 ? 3 : text[0] >= 0xe0 ? 2 : text[0] >= 0xc2 ? 1 : 0;

    if (text[0] < 0x80) {
        return (text[0] >= ' ' && text[0] != 0x7f) || (text[0] && strchr("\t\r\n\f", text[0]));
    }
    if (more == 0 || text[0] > 0xf4 || more >= bytes) {
        return 0;
    }
    for (size_t i = 1; i <= more; i++) {
        if ((text[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    return 1 + more;
}

/* Return: whether a file begins with letters, to its end if it is short. */
static bool is_text(const char *text, size_t bytes)
{
    size_t n = base_min(bytes, (size_t)64), i = 0, step = 1;

    while (i < n && (step = character((const unsigned char *)text + i, bytes - i)) > 0) {
        i += step;
    }
    return i >= n && n > 0;
}

const char *mdl_looks_like(const void *data, size_t bytes)
{
    const char *text = data;
    size_t zeros = 0;

    for (size_t i = 0; i < base_array_count(magics); i++) {
        const struct magic *m = &magics[i];

        if (bytes >= m->at + m->count && memcmp(text + m->at, m->bytes, m->count) == 0) {
            return m->what;
        }
    }
    if (begins(text, bytes, "<!doctype html") || begins(text, bytes, "<html")) {
        return "an HTML page, perhaps of a download that failed or needs a login";
    }
    if (begins(text, bytes, "<?xml") || begins(text, bytes, "<net")) {
        return "an XML file, perhaps of OpenVINO; use the .onnx file that it was made of";
    }
    while (zeros < bytes && zeros < 512 && text[zeros] == '\0') {
        zeros++;
    }
    if (zeros > 0 && zeros == base_min(bytes, (size_t)512)) {
        return "a file of zeros, perhaps of a download that did not end";
    }
    return is_text(text, bytes) ? "a text file" : NULL;
}
