/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/config/keys.h"

#include "base/base.h"
#include "tuner/search/search_table.h"

enum { NOW = 0, START = 1, ADVANCED = 2 };
#define ROW(id_, key_, type_, when_, help_, ...)                                                   \
    {.id = DMN_KEY_##id_,                                                                          \
     .key = key_,                                                                                  \
     .type = DMN_CONFIG_##type_,                                                                   \
     .restart = ((when_)&START) != 0,                                                              \
     .advanced = ((when_)&ADVANCED) != 0,                                                          \
     .help = help_,                                                                                \
     __VA_ARGS__},
#define INT(id, key, unit_, min_, max_, value_, when, help)                                        \
    ROW(id, key, INT, when, help, .unit = unit_, .min = min_, .max = max_, .value = value_)
#define BOOL(id, key, value_, when, help)                                                          \
    ROW(id, key, BOOL, when, help, .unit = "", .value = value_)
#define STRING(id, key, max_, text_, when, help)                                                   \
    ROW(id, key, STRING, when, help, .unit = "", .max = max_, .text = text_)
#define ENUM(id, key, choices_, value_, when, help)                                                \
    ROW(id, key, ENUM, when, help, .unit = "", .choices = choices_, .value = value_)

const struct dmn_config_row dmn_config_rows[DMN_KEY_COUNT] = {
    DMN_KEY_ROWS(INT, BOOL, STRING, ENUM)};

const struct dmn_config_item_row dmn_config_item_rows[DMN_CONFIG_ITEM_COUNT] = {
    {"models", "name", "string", "",
     "Name of the model: letters, digits, '.', '_' and '-', then \"#FIRST-LAST\" to serve only "
     "these units of it, at most 63.",
     true},
    {"models", "path", "string", "",
     "ONNX file or network description; a relative path is relative to this file's folder.", true},
    {"models", "shapes", "shapes", "",
     "Sizes for dimensions that the file leaves open, before those of the sidecar: an object such "
     "as {\"images\": [1, 3, 480, 640], \"height\": 480}, or text such as "
     "\"images=1x3x480x640,height=480\", by names of inputs or of dimensions.",
     false},
    {"models", "plan", "string", "",
     "Serve by this plan (FIRST-LAST@TEAMS|...). Empty: the daemon plans.", false},
    {"models", "latest", "bool", "false",
     "Drop older frames for newer ones in streams that do not ask for another policy.", false},
    {"models", "kernels", "string", "",
     "Comma-separated parts of primitive names to prefer, for example \"__ref\". Empty: the "
     "fastest.",
     false},
    {"models", "calibration", "string", "",
     "Quantise the model by this file of ranges, written by \"pipectl quantize --write\"; a "
     "relative path is relative to this file's folder. Empty: use what pipectl quantize kept, "
     "if anything.",
     false},
    {"models", "boards", "string", "off",
     "Serve the model over several boards: \"auto\", or a route FIRST-LAST@BOARDS|... such as "
     "\"0-16@here|17-44@b2+b3\", with the names of pipectl board list and \"here\" for this board. "
     "\"off\": this board alone.",
     false},
    {"models", "rate", "number", "0",
     "Frames a second that the model is to have beside others. 0: as many as come.", false},
    {"models", "weight", "number", "1",
     "What the model gets of the cores' time when all want more than there is, beside the weights "
     "of others of its class, 0.001 to 1000.",
     false},
    {"models", "class", "number", "0",
     "0 to 7: between two units, a core goes to the model of the highest class that wants it. "
     "Others keep planner.floor_percent of it.",
     false},
    {"models", "deadline_ms", "number", "0",
     "Each frame is to be answered within this time; needs rate. In a class, frames that are due "
     "sooner go first. 0: none.",
     false},
    {"models", "max_share", "number", "1",
     "Of all cores' time, what the model uses at most, 0.01 to 1, even when nobody else wants it.",
     false},
    {"eps", "name", "string", "",
     "Name of the execution place: a letter, then letters, digits and '_'.", true},
    {"eps", "cpus", "cores", "",
     "Its cores by kernel number, which the machine must have, online or not: text such as "
     "\"0-3,6\", or a list such as [0, 1].",
     true},
    {"eps", "speed", "number", "1", "Relative speed, above 0 and at most 1, until it is measured.",
     false},
    {"eps", "watts", "number", "0",
     "Power of one busy core above idle, for the objective power, until it is learned from "
     "measured joules. 0: estimated from the speed.",
     false},
};

bool dmn_config_choice_name(const struct dmn_config_row *row, size_t index,
                            char ret[DMN_CONFIG_CHOICE_BYTES])
{
    const char *at = row->choices;

    for (size_t i = 0; at; i++) {
        const char *end = strchrnul(at, '|');

        if (i == index) {
            snprintf(ret, DMN_CONFIG_CHOICE_BYTES, "%.*s", (int)(end - at), at);
            return true;
        }
        at = *end ? end + 1 : NULL;
    }
    return false;
}

int dmn_config_choice(const struct dmn_config_row *row, const char *name)
{
    char choice[DMN_CONFIG_CHOICE_BYTES];

    for (int i = 0; dmn_config_choice_name(row, (size_t)i, choice); i++) {
        if (strcmp(choice, name) == 0) {
            return i;
        }
    }
    return -ENOENT;
}
