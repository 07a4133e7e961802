/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tests/kernels/real_layers.h - layers of real networks, for tests (scaled down) and benches
 *
 * One line per distinct shape; where a network repeats a shape, it stands once.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct layer_conv {
    const char *name;
    size_t c, h, w, o, k, stride, pad, groups; /* pad on all sides */
};

static const struct layer_conv layer_convs[] = {
    {"alexnet 1", 3, 224, 224, 64, 11, 4, 2, 1},
    {"alexnet 2", 64, 27, 27, 192, 5, 1, 2, 1},
    {"alexnet 3", 192, 13, 13, 384, 3, 1, 1, 1},
    {"alexnet 4", 384, 13, 13, 256, 3, 1, 1, 1},
    {"alexnet caffe 2", 96, 27, 27, 256, 5, 1, 2, 2},
    {"vgg 1", 3, 224, 224, 64, 3, 1, 1, 1},
    {"vgg 2", 64, 224, 224, 64, 3, 1, 1, 1},
    {"vgg 3", 64, 112, 112, 128, 3, 1, 1, 1},
    {"vgg 6", 256, 56, 56, 256, 3, 1, 1, 1},
    {"vgg 9", 512, 28, 28, 512, 3, 1, 1, 1},
    {"vgg 11", 512, 14, 14, 512, 3, 1, 1, 1},
    {"resnet 1", 3, 224, 224, 64, 7, 2, 3, 1},
    {"resnet 64 1x1", 64, 56, 56, 64, 1, 1, 0, 1},
    {"resnet 64 3x3", 64, 56, 56, 64, 3, 1, 1, 1},
    {"resnet 64-256 1x1", 64, 56, 56, 256, 1, 1, 0, 1},
    {"resnet 256-64 1x1", 256, 56, 56, 64, 1, 1, 0, 1},
    {"resnet 256-512 1x1/2", 256, 56, 56, 512, 1, 2, 0, 1},
    {"resnet 128 3x3/2", 128, 56, 56, 128, 3, 2, 1, 1},
    {"resnet 128 3x3", 128, 28, 28, 128, 3, 1, 1, 1},
    {"resnet 512-128 1x1", 512, 28, 28, 128, 1, 1, 0, 1},
    {"resnet 256 3x3", 256, 14, 14, 256, 3, 1, 1, 1},
    {"resnet 256-1024 1x1", 256, 14, 14, 1024, 1, 1, 0, 1},
    {"resnet 1024-256 1x1", 1024, 14, 14, 256, 1, 1, 0, 1},
    {"resnet 512 3x3", 512, 7, 7, 512, 3, 1, 1, 1},
    {"resnet 2048-512 1x1", 2048, 7, 7, 512, 1, 1, 0, 1},
    {"resnet 512-2048 1x1", 512, 7, 7, 2048, 1, 1, 0, 1},
    {"googlenet 3a 5x5", 16, 28, 28, 32, 5, 1, 2, 1},
    {"googlenet 3a 1x1", 192, 28, 28, 96, 1, 1, 0, 1},
    {"googlenet 4a 3x3", 96, 14, 14, 208, 3, 1, 1, 1},
    {"googlenet 5b 1x1", 832, 7, 7, 384, 1, 1, 0, 1},
    {"mobilenet 1", 3, 224, 224, 32, 3, 2, 1, 1},
    {"mobilenet dw 32", 32, 112, 112, 32, 3, 1, 1, 32},
    {"mobilenet 32-64", 32, 112, 112, 64, 1, 1, 0, 1},
    {"mobilenet dw 64/2", 64, 112, 112, 64, 3, 2, 1, 64},
    {"mobilenet dw 512", 512, 14, 14, 512, 3, 1, 1, 512},
    {"mobilenet 512", 512, 14, 14, 512, 1, 1, 0, 1},
    {"mobilenet dw 1024", 1024, 7, 7, 1024, 3, 1, 1, 1024},
    {"mobilenet2 16-96", 16, 112, 112, 96, 1, 1, 0, 1},
    {"mobilenet2 dw 96/2", 96, 112, 112, 96, 3, 2, 1, 96},
    {"mobilenet2 96-24", 96, 56, 56, 24, 1, 1, 0, 1},
    {"mobilenet2 24-144", 24, 56, 56, 144, 1, 1, 0, 1},
    {"mobilenet2 dw 144", 144, 56, 56, 144, 3, 1, 1, 144},
    {"mobilenet2 160-960", 160, 7, 7, 960, 1, 1, 0, 1},
    {"mobilenet2 320-1280", 320, 7, 7, 1280, 1, 1, 0, 1},
    {"mobilenet3 dw 72 5x5/2", 72, 56, 56, 72, 5, 2, 2, 72},
    {"mobilenet3 dw 120 5x5", 120, 28, 28, 120, 5, 1, 2, 120},
    {"squeezenet 1", 3, 224, 224, 64, 3, 2, 0, 1},
    {"squeezenet squeeze", 128, 55, 55, 16, 1, 1, 0, 1},
    {"squeezenet expand", 48, 13, 13, 192, 3, 1, 1, 1},
    {"squeezenet last", 512, 13, 13, 1000, 1, 1, 0, 1},
    {"yolo tiny 1", 3, 416, 416, 16, 3, 1, 1, 1},
    {"yolo tiny 2", 16, 208, 208, 32, 3, 1, 1, 1},
    {"yolo tiny 7", 512, 13, 13, 1024, 3, 1, 1, 1},
    {"yolo 32-64/2", 32, 416, 416, 64, 3, 2, 1, 1},
    {"yolo head", 256, 26, 26, 255, 1, 1, 0, 1},
    {"resnext 128 groups of 4", 128, 56, 56, 128, 3, 1, 1, 32},
    {"resnext 256/2 groups of 8", 256, 56, 56, 256, 3, 2, 1, 32},
    {"resnext 256 groups of 8", 256, 28, 28, 256, 3, 1, 1, 32},
    {"resnext 512 groups of 16", 512, 14, 14, 512, 3, 1, 1, 32},
    {"resnext 1024 groups of 32", 1024, 7, 7, 1024, 3, 1, 1, 32},
    {"regnet 32/2 groups of 16", 32, 112, 112, 32, 3, 2, 1, 2},
    {"regnet 160 groups of 16", 160, 14, 14, 160, 3, 1, 1, 10},
    {"regnet 400 groups of 16", 400, 7, 7, 400, 3, 1, 1, 25},
};

/* of one row and of one column: 1 x k and k x 1, with pad along them; the last is of no network */
static const struct layer_conv layer_lines[] = {
    {"inception 17 128", 128, 17, 17, 128, 7, 1, 3, 1},
    {"inception 17 128-192", 128, 17, 17, 192, 7, 1, 3, 1},
    {"inception 17 160", 160, 17, 17, 160, 7, 1, 3, 1},
    {"inception 17 160-192", 160, 17, 17, 192, 7, 1, 3, 1},
    {"inception 17 192", 192, 17, 17, 192, 7, 1, 3, 1},
    {"inception 8 384", 384, 8, 8, 384, 3, 1, 1, 1},
    {"erfnet 64", 64, 128, 256, 64, 3, 1, 1, 1},
    {"enet 32", 32, 64, 64, 32, 5, 1, 2, 1},
    {"lines of 5", 128, 28, 28, 128, 5, 1, 2, 1},
};

/* transposed ones: c to o channels, k x k, the image stride times as large */
static const struct layer_conv layer_transposes[] = {
    {"unet 512-256 up", 512, 16, 16, 256, 2, 2, 0, 1},
    {"unet 64-32 up", 64, 128, 128, 32, 2, 2, 0, 1},
    {"detector 256 up", 256, 16, 16, 256, 4, 2, 1, 1},
    {"fcn 21 up by 8", 21, 28, 28, 21, 16, 8, 4, 21},
};

struct layer_product {
    const char *name;
    size_t m, k, n;
};

static const struct layer_product layer_products[] = {
    {"alexnet fc6", 1, 9216, 4096}, {"vgg fc6", 1, 25088, 4096},     {"vgg fc7", 1, 4096, 4096},
    {"resnet fc", 1, 2048, 1000},   {"mobilenet fc", 1, 1280, 1000}, {"lenet fc", 1, 400, 120},
    {"batch of 8", 8, 2048, 1000},  {"batch of 100", 100, 512, 512},
};

struct layer_pool {
    const char *name;
    bool max;
    size_t c, h, w, k, stride, pad;
};

static const struct layer_pool layer_pools[] = {
    {"alexnet", true, 64, 55, 55, 3, 2, 0},
    {"vgg", true, 64, 224, 224, 2, 2, 0},
    {"resnet", true, 64, 112, 112, 3, 2, 1},
    {"googlenet", true, 480, 14, 14, 3, 1, 1},
    {"googlenet 3a", true, 192, 28, 28, 3, 1, 1},
    {"squeezenet 1", true, 64, 111, 111, 3, 2, 0},
    {"squeezenet 3", true, 128, 55, 55, 3, 2, 0},
    {"yolo tiny", true, 512, 13, 13, 2, 1, 0},
    {"resnet global", false, 2048, 7, 7, 7, 1, 0},
    {"googlenet global", false, 1024, 7, 7, 7, 1, 0},
    {"mobilenet2 global", false, 1280, 7, 7, 7, 1, 0},
    {"squeezenet global", false, 1000, 13, 13, 13, 1, 0},
    {"densenet", false, 128, 56, 56, 2, 2, 0},
};

/* two images, or an image and a value for each channel */
struct layer_sum {
    const char *name;
    bool channels, product;
    size_t c, h, w;
};

static const struct layer_sum layer_sums[] = {
    {"resnet add 256", false, false, 256, 56, 56},
    {"resnet add 512", false, false, 512, 28, 28},
    {"resnet add 1024", false, false, 1024, 14, 14},
    {"resnet add 2048", false, false, 2048, 7, 7},
    {"mobilenet2 add 24", false, false, 24, 56, 56},
    {"mobilenet2 add 64", false, false, 64, 14, 14},
    {"mobilenet3 scale 72", true, true, 72, 28, 28},
    {"mobilenet3 scale 576", true, true, 576, 7, 7},
};
