/* SPDX-License-Identifier: Apache-2.0 */
#include "model/recipes.h"

enum range {
    PIXELS,
    PIXELS_BGR,
    UNIT,
    SIGNED,
    SIGNED_BGR,
    IMAGENET,
    IMAGENET_BGR,
    CAFFE,
    CAFFE_WHOLE,
    LESS_127,
    DIGITS,
};

/* x = (pixel / divisor - mean) / std */
static const struct {
    double divisor, mean[3], std[3];
    bool bgr;
    const char *words;
} ranges[] = {
    [PIXELS] = {1, {0}, {1, 1, 1}, false, "pixels from 0 to 255"},
    [PIXELS_BGR] = {1, {0}, {1, 1, 1}, true, "BGR pixels from 0 to 255"},
    [UNIT] = {255, {0}, {1, 1, 1}, false, "pixels from 0 to 1"},
    [SIGNED] = {127.5, {1, 1, 1}, {1, 1, 1}, false, "pixels from -1 to 1"},
    [SIGNED_BGR] = {127.5, {1, 1, 1}, {1, 1, 1}, true, "BGR pixels from -1 to 1"},
    [IMAGENET] =
        {255, {0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}, false, "ImageNet's mean and deviation"},
    [IMAGENET_BGR] = {255,
                      {0.485, 0.456, 0.406},
                      {0.229, 0.224, 0.225},
                      true,
                      "BGR with ImageNet's mean and deviation"},
    [CAFFE] = {1,
               {103.939, 116.779, 123.68},
               {1, 1, 1},
               true,
               "BGR pixels from 0 to 255 minus ImageNet's mean"},
    [CAFFE_WHOLE] =
        {1, {104, 117, 123}, {1, 1, 1}, true, "BGR pixels from 0 to 255 minus 104, 117, 123"},
    [LESS_127] = {1, {127, 127, 127}, {128, 128, 128}, false, "pixels minus 127, divided by 128"},
    [DIGITS] = {255,
                {0.1307, 0.1307, 0.1307},
                {0.3081, 0.3081, 0.3081},
                false,
                "pixels from 0 to 1 minus 0.1307, divided by 0.3081"},
};

#define IS(sign) .has = MDL_SIGN_##sign
#define OF(task_, outputs_) IS(ULTRALYTICS), .task = (task_), .outputs = (outputs_)
#define STRETCH .fit = PICTURE_STRETCH
#define CROP .fit = PICTURE_CROP
#define BARS(colour) .fit = PICTURE_LETTERBOX, .pad = (colour)
#define MEAN (-1)
#define GREY MDL_PAD_DEFAULT
#define SIZE(height_, width_) .height = (height_), .width = (width_)
#define CLASSES .output = "{\"decode\": \"classes\"}"
#define MASK(more) .output = "{\"decode\": \"mask\"" more "}"
#define YOLO(more) .output = "{\"decode\": \"yolo\"" more "}"
#define SSD(more) .output = "{\"decode\": \"ssd\"" more "}"
#define BOXES(more) .output = "{\"decode\": \"boxes\"" more "}"
#define READER .output = "{\"decode\": \"ctc\", \"alphabet\": []}"
#define POINTS                                                                                     \
    .output = "{\"decode\": \"keypoints\", \"columns\": [\"y\", \"x\", \"score\"], \"unit\": "     \
              "\"relative\"}"
#define RELATIVE ", \"unit\": \"relative\""
#define ROWS_YX ", \"columns\": [\"y1\", \"x1\", \"y2\", \"x2\"]"
#define OBJECTS ", \"objectness\": \"product\""

/* The first row that fits counts: what says more comes first. docs/outputs.md has the recipes. */
/* clang-format off */
static const struct mdl_recipe recipes[] = {
    /* ---- names of outputs ---- */
    {"UltraFace", .outputs = "scores:scores[1,n,2] boxes:boxes[1,n,4]",
     .range = LESS_127, STRETCH, SIZE(240, 320), .labels = {"BACKGROUND", "face"},
     SSD(RELATIVE ", \"score\": 0.7, \"iou\": 0.3")},
    {"an SSD that decodes its boxes", .outputs = "scores:scores[1,n,c] boxes:boxes[1,n,4]",
     .range = LESS_127, STRETCH, SIZE(300, 300), SSD(RELATIVE)},
    {"YuNet", .outputs =
     "boxes:bbox_8[1,a,4] boxes:bbox_16[1,b,4] boxes:bbox_32[1,c,4] "
     "scores:cls_8[1,a,1] scores:cls_16[1,b,1] scores:cls_32[1,c,1] "
     "objectness:obj_8[1,a,1] objectness:obj_16[1,b,1] objectness:obj_32[1,c,1] "
     "keypoints:kps_8[1,a,10] keypoints:kps_16[1,b,10] keypoints:kps_32[1,c,10]",
     .range = PIXELS_BGR, BARS(0), SIZE(640, 640), .labels = {"face"},
     SSD(", \"coding\": \"grid\", \"strides\": [8, 16, 32], \"objectness\": \"root\", "
         "\"background\": false, \"keypoints\": 5")},
    {"TensorFlow's detectors", .outputs =
     "boxes:detection_boxes[1,n,4] scores:detection_scores[1,n] classes:detection_classes[1,n] "
     "count:num_detections[1] ...", .range = PIXELS, STRETCH, SIZE(320, 320),
     BOXES(RELATIVE ROWS_YX)},
    {"detectors of MMDetection", .outputs = "boxes:dets[1,n,5] classes:labels[1,n]",
     .range = IMAGENET, BARS(0), SIZE(640, 640),
     BOXES(", \"columns\": [\"x1\", \"y1\", \"x2\", \"y2\", \"score\"]")},

    /* ---- metadata of Ultralytics ---- */
    {"classifiers of Ultralytics", OF("classify", NULL), .range = UNIT, CROP, SIZE(224, 224),
     CLASSES},
    {"detectors of Ultralytics that choose boxes", OF("detect", "[1,n,6]f"), .range = UNIT,
     BARS(GREY), SIZE(640, 640), BOXES("")},
    {"RT-DETR of Ultralytics", OF("detect", "[1,300,k]f"), .range = UNIT, STRETCH, SIZE(640, 640),
     YOLO(RELATIVE ", \"layout\": \"rows\"")},
    {"detectors of Ultralytics", OF("detect", "[1,f,n]f ..."), .range = UNIT, BARS(GREY),
     SIZE(640, 640), YOLO("")},
    {"pose networks of Ultralytics", OF("pose", "[1,f,g]f"), .range = UNIT, BARS(GREY),
     SIZE(640, 640), YOLO(", \"keypoints\": 0")},
    {"networks of Ultralytics", OF(NULL, NULL), .range = UNIT, BARS(GREY), SIZE(640, 640),
     .needs = "instance masks, rotated boxes, and points of boxes that the network chooses, are "
              "not decoded"},

    /* ---- text: the picture of a line is low ---- */
    {"readers of PaddleOCR", .input = "[3,48,w]", .outputs = "[1,s,c]f", .range = SIGNED_BGR,
     BARS(MEAN), SIZE(48, 320), READER},
    {"readers of PaddleOCR", .input = "[3,32,w]", .outputs = "[1,s,c]f", .range = SIGNED_BGR,
     BARS(MEAN), SIZE(32, 320), READER},
    {"readers of PaddleOCR", IS(PADDLE), .input = "[3,0,w]", .outputs = "[1,s,c]f",
     .range = SIGNED_BGR, BARS(MEAN), SIZE(48, 320), READER},
    {"readers of lines", .input = "[1,32,w]", .outputs = "[s,1,c]f", .range = SIGNED, BARS(MEAN),
     SIZE(32, 100), READER},
    {"finders of text of PaddleOCR", IS(PADDLE), .outputs = "[1,1,h,w]f", .range = IMAGENET_BGR,
     BARS(MEAN), SIZE(640, 640), .output = "{\"decode\": \"dbnet\"}"},
    {"DBNet", IS(AREAS), .outputs = "[1,1,h,w]", .range = IMAGENET_BGR, BARS(MEAN),
     SIZE(640, 640), .output = "{\"decode\": \"dbnet\"}"},

    /* ---- shapes of outputs ---- */
    {"RetinaFace", .outputs = "boxes:[1,r,4] scores:[1,r,2] keypoints:[1,r,10]",
     .range = CAFFE_WHOLE, BARS(MEAN), SIZE(640, 640), .labels = {"background", "face"},
     SSD(", \"coding\": \"priors\", \"strides\": [8, 16, 32], \"keypoints\": 5, \"anchors\": "
         "[[[16, 16], [32, 32]], [[64, 64], [128, 128]], [[256, 256], [512, 512]]]")},
    {"YOLO-NAS", .outputs = "boxes:[1,g,4] scores:[1,g,c]", .range = UNIT, BARS(GREY),
     SIZE(640, 640), SSD(", \"background\": false")},
    {"YOLOv5 and v7", .outputs = "[1,t,f]f ...", .range = UNIT, BARS(GREY), SIZE(640, 640),
     YOLO(OBJECTS)},
    {"YOLOv8 and later, with rows of boxes", .outputs = "[1,g,k]f", .range = UNIT, BARS(GREY),
     SIZE(640, 640), YOLO("")},
    {"YOLOv8 and later, with rows of boxes", .outputs = "[1,g,84]f", .range = UNIT, BARS(GREY),
     SIZE(640, 640), YOLO("")},
    {"NanoDet", .outputs = "[1,g,112]f", .range = IMAGENET_BGR, STRETCH, SIZE(416, 416),
     .needs = "distributions of the sides of boxes are not decoded"},
    {"YOLOX that decodes its boxes", IS(EXP), .outputs = "[1,g,f]f", .range = PIXELS_BGR,
     BARS(GREY), SIZE(640, 640), YOLO(OBJECTS)},
    {"YOLOX", .outputs = "[1,g,f]f", .range = PIXELS_BGR, BARS(GREY), SIZE(640, 640),
     YOLO(OBJECTS ", \"head\": \"yolox\", \"strides\": []")},
    {"pose networks of YOLOv8 and later", .outputs = "[1,56,g]f ...", .range = UNIT, BARS(GREY),
     SIZE(640, 640), YOLO(", \"keypoints\": 0")},
    {"YOLOv8 and later", .outputs = "[1,f,g]f ...", .range = UNIT, BARS(GREY), SIZE(640, 640),
     YOLO("")},
    {"YOLOv8 and later, of COCO", .outputs = "[1,84,n]f ...", .range = UNIT, BARS(GREY),
     SIZE(640, 640), YOLO("")},
    {"YOLOv5 and v7, of COCO", .outputs = "[1,n,85]f ...", .range = UNIT, BARS(GREY),
     SIZE(640, 640), YOLO(OBJECTS)},
    {"YOLOv10, and YOLO that chooses boxes", .outputs = "[1,n,6]f", .range = UNIT, BARS(GREY),
     SIZE(640, 640), BOXES("")},
    {"YOLO that chooses boxes", .lacks = MDL_SIGN_CLASSES, .outputs = "[n,6]f", .range = UNIT,
     BARS(GREY), SIZE(640, 640), BOXES("")},
    {"YOLOv7 that chooses boxes", .lacks = MDL_SIGN_CLASSES, .outputs = "[n,7]f", .range = UNIT,
     BARS(GREY), SIZE(640, 640),
     BOXES(", \"columns\": [\"skip\", \"x1\", \"y1\", \"x2\", \"y2\", \"class\", \"score\"]")},
    {"torchvision's detectors", .outputs = "boxes:[n,4]f classes:[n]i scores:[n]f ...",
     .range = UNIT, BARS(GREY), SIZE(640, 640), BOXES("")},
    {"detectors of TensorFlow Lite", .outputs =
     "boxes:[1,n,4]f classes:[1,n] scores:[1,n]f count:[1]", .range = SIGNED, STRETCH,
     SIZE(320, 320), BOXES(RELATIVE ROWS_YX)},
    {"MoveNet", .outputs = "[1,1,17,3]", .range = PIXELS, BARS(0), SIZE(192, 192), POINTS},
    {"MoveNet", .outputs = "[1,17,3]", .range = PIXELS, BARS(0), SIZE(192, 192), POINTS},
    {"networks for segmentation", IS(MAPS), .lacks = MDL_SIGN_NHWC, .range = IMAGENET, STRETCH,
     SIZE(224, 224), MASK("")},
    {"networks for segmentation", IS(MAPS), .range = SIGNED, STRETCH, SIZE(224, 224),
     MASK(", \"layout\": \"rows\"")},

    /* ---- habits ---- */
    {"digits of CNTK", IS(CNTK), .input = "[1,28,28]", .range = PIXELS, STRETCH, CLASSES},
    {"digits of PyTorch", IS(TORCH), .input = "[1,28,28]", .range = DIGITS, STRETCH, CLASSES},
    {"networks for grey pictures", .input = "[1,h,w]", .range = UNIT, STRETCH, SIZE(224, 224),
     CLASSES},
    {"YOLO", IS(LARGE), .range = UNIT, BARS(GREY), SIZE(640, 640)},
    {"Caffe", .input = "[3,227,w]", .range = CAFFE, STRETCH, CLASSES},
    {"Caffe", IS(CAFFE), .range = CAFFE, STRETCH, SIZE(224, 224), CLASSES},
    {"TensorFlow's 1001 classes", .outputs = "[1,1001] ...", .range = SIGNED, STRETCH,
     SIZE(224, 224), CLASSES},
    {"networks of Keras", IS(KERAS), .range = SIGNED, STRETCH, SIZE(224, 224), CLASSES},
    {"classifiers of torchvision", IS(CLASSES), .lacks = MDL_SIGN_OTHER, .range = IMAGENET, CROP,
     SIZE(224, 224), CLASSES},
    {"torchvision", .range = IMAGENET, STRETCH, SIZE(224, 224)},
};
/* clang-format on */

static bool fits(const struct mdl_recipe *r, const struct mdl_signs *s, struct mdl_match *ret)
{
    *ret = (struct mdl_match){0};
    return (s->is & r->has) == r->has && !(s->is & r->lacks) &&
           (!r->task || (s->task && strcmp(r->task, s->task) == 0)) &&
           (!r->input || mdl_match_input(s, r->input)) &&
           (!r->outputs || mdl_match_outputs(s, r->outputs, ret));
}

static void set_range(struct mdl_guess *to, unsigned range)
{
    to->scale = (float)(1 / ranges[range].divisor);
    to->bgr = ranges[range].bgr && to->channels == 3;
    for (size_t i = 0; i < 3; i++) {
        to->mean[i] = (float)ranges[range].mean[i];
        to->std[i] = (float)ranges[range].std[i];
    }
}

const struct mdl_recipe *mdl_recipe_find(const struct mdl_signs *s, struct mdl_match *ret_match,
                                         struct mdl_guess *guess)
{
    const struct mdl_recipe *r = recipes;

    *guess = s->guess;
    *ret_match = (struct mdl_match){0};
    if (!guess->picture) {
        return NULL;
    }
    while (!fits(r, s, ret_match)) {
        r++; /* the last one fits all */
    }
    guess->fit = r->fit;
    guess->pad = r->fit == PICTURE_LETTERBOX ? r->pad : MDL_PAD_DEFAULT;
    if (!guess->shown) {
        set_range(guess, r->range);
        mdl_guess_say(
            guess, "Not shown by the graph: %s%s, as for %s. Compare it with the network's readme.",
            ranges[r->range].words,
            r->fit == PICTURE_LETTERBOX ? ", and bars around the picture" : "", r->name);
    } else {
        mdl_guess_say(guess, "Fitted as for %s.", r->name);
    }
    if (guess->nhwc) {
        mdl_guess_say(guess, "The channels come last.");
    }
    return r;
}
