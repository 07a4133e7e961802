/* SPDX-License-Identifier: Apache-2.0 */
/* What may be shown of a text that came from outside; the same in JSON. */
#include "base/json_text.h"
#include "base/shown_text.h"
#include "base/tensor_name.h"
#include "tests/harness.h"

#include <stdio.h>
#include <unistd.h>

static void cleans(const char *text, const char *kept, const char *wanted)
{
    char copy[256];

    snprintf(copy, sizeof(copy), "%s", text);
    shown_clean(copy, kept);
    T_STR(copy, wanted);
    T_TRUE(shown_ok(copy, strlen(copy)) || *kept);
}

TEST(what_a_terminal_obeys_is_hidden)
{
    cleans("a\033[2Jb\a\r\n\tc\177", "", "a?[2Jb????c?");
    cleans("a\tb\nc", "\n", "a?b\nc");
    cleans("csi \xc2\x9b"
           "31m nel \xc2\x85 end \xc2\x9f",
           "", "csi ?31m nel ? end ?");
    cleans("", "", "");
}

TEST(what_turns_or_hides_a_text_is_hidden)
{
    cleans("exe\xe2\x80\xaegnp.", "", "exe?gnp.");           /* U+202E */
    cleans("\xe2\x81\xa6x\xe2\x81\xa9\xd8\x9c", "", "?x??"); /* U+2066, U+2069, U+061C */
    cleans("a\xe2\x80\x8b"
           "b\xe2\x80\x8d"
           "c\xef\xbb\xbf",
           "", "a?b?c?");                               /* U+200B, U+200D, U+FEFF */
    cleans("l\xe2\x80\xa8p\xe2\x80\xa9", "", "l?p?");   /* U+2028, U+2029 */
    cleans("t\xf3\xa0\x81\x81s\xc2\xad", "", "t?s?");   /* tag A, soft hyphen */
    cleans("n\xef\xbf\xbe\xf0\x9f\xbf\xbf", "", "n??"); /* U+FFFE, U+1FFFF */
}

TEST(other_letters_stay)
{
    static const char *const texts[] = {
        "caf\xc3\xa9",      "\xe6\xa2\x85\xe8\x8a\xb1", "\xd8\xb9\xd8\xb1\xd8\xa8\xd9\x8a",
        "\xf0\x9f\x90\xb1", "\xc2\xa0\xef\xbf\xbd",     "~ !"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        T_TRUE(shown_ok(texts[i], strlen(texts[i])));
        cleans(texts[i], "", texts[i]);
    }
}

TEST(what_is_not_utf8_is_one_mark_a_byte)
{
    cleans("\377\300\200\355\240\200 \xc3", "", "?????? ?");
    cleans("\xf0\x9f\x90 \xf5\x80\x80\x80", "", "??? ????");
}

/* Every character alone: hidden or shown, and what is decoded is what was written. */
TEST(all_characters)
{
    size_t hidden = 0;

    for (uint32_t c = 1; c <= 0x10ffff; c++) {
        uint8_t b[4];
        uint32_t got = 0;
        size_t n = c < 0x80      ? (b[0] = (uint8_t)c, 1)
                   : c < 0x800   ? (b[0] = (uint8_t)(0xc0 | c >> 6), 2)
                   : c < 0x10000 ? (b[0] = (uint8_t)(0xe0 | c >> 12), 3)
                                 : (b[0] = (uint8_t)(0xf0 | c >> 18), 4);

        for (size_t i = 1; i < n; i++) {
            b[i] = (uint8_t)(0x80 | (c >> (6 * (n - 1 - i)) & 0x3f));
        }
        if (c >= 0xd800 && c < 0xe000) {
            T_EQ(shown_decode(b, n, &got), 0u);
            continue;
        }
        T_EQ(shown_decode(b, n, &got), n);
        T_EQ(got, c);
        T_EQ(n > 1 ? shown_decode(b, n - 1, &got) : 0, 0u);
        hidden += shown_hidden(c);
    }
    T_TRUE(hidden > 400 && hidden < 5000);
}

TEST(json_escapes_what_is_hidden)
{
    json_t *v = json_pack("{s:s, s:s}", "k\xe2\x80\xae", "a\xc2\x9b\177 \xf3\xa0\x81\x81\xc3\xa9",
                          "b", "\033\n");
    char *text = json_text(v, JSON_COMPACT | JSON_SORT_KEYS);
    json_t *again = text ? json_loads(text, 0, NULL) : NULL;

    T_STR(text, "{\"b\":\"\\u001B\\n\",\"k\\u202e\":\"a\\u009b\\u007f \\udb40\\udc41\xc3\xa9\"}");
    T_TRUE(json_equal(v, again));
    json_decref(v);
    json_decref(again);
    free(text);
}

TEST(a_text_that_was_cut_stays)
{
    static const char whole[] = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\xb1";
    static const size_t ends[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10}; /* of characters, by length */

    for (size_t n = 0; n < sizeof(whole); n++) {
        char cut[sizeof(whole)];
        json_t *v;

        snprintf(cut, sizeof(cut), "%.*s", (int)n, whole);
        v = json_text_shown(cut);
        T_EQ(json_string_length(v), n);
        T_TRUE(strncmp(json_string_value(v), whole, ends[n]) == 0);
        T_EQ(strspn(json_string_value(v) + ends[n], "?"), n - ends[n]);
        json_decref(v);
        shown_whole(cut);
        T_EQ(strlen(cut), ends[n]);
        T_TRUE(strncmp(cut, whole, ends[n]) == 0);
    }
}

/* Names of 63 bytes stay; longer ones stay UTF-8, and different. */
TEST(names_of_tensors)
{
    char whole[4097], other[TENSOR_NAME_BYTES], name[TENSOR_NAME_BYTES], again[TENSOR_NAME_BYTES];

    for (size_t n = 0; n < 200; n++) {
        static const char *const letters[] = {"n", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x90\xb1"};

        for (size_t i = 0; i < base_array_count(letters); i++) {
            whole[0] = '\0';
            for (size_t k = 0; k < n; k++) {
                strcat(whole, letters[i]);
            }
            tensor_name(whole, name);
            T_STR(tensor_name(name, again), name);
            T_TRUE(shown_ok(name, strlen(name)));
            T_EQ(strcmp(name, whole) == 0, strlen(whole) < TENSOR_NAME_BYTES);
            strcat(whole, "b");
            T_TRUE(strcmp(tensor_name(whole, other), name) != 0);
        }
    }
    memset(whole, 'a', 80);
    whole[80] = '\0';
    T_STR(tensor_name(whole, name),
          "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa~5143e6d5");
}

TEST(a_long_text_keeps_its_ends)
{
    char text[2 * SHOWN_SHORT_MAX] = "", room[SHOWN_SHORT_MAX];

    memset(text, 'a', SHOWN_SHORT_MAX - 1);
    T_TRUE(shown_short(text, room, sizeof(room)) == text);
    for (size_t i = 0; i + 4 < sizeof(text); i += 2) {
        memcpy(text + i, "\xc3\xa9", 3);
    }
    for (int odd = 0; odd < 2; odd++) {
        memmove(text + odd, text, strlen(text) + 1);
        text[0] = odd ? 'a' : text[0];
        T_TRUE(shown_short(text, room, sizeof(room)) == room);
        T_TRUE(shown_ok(room, strlen(room)));
        T_TRUE(strstr(room, "\xa9...\xc3") && strlen(room) > SHOWN_SHORT_MAX - 4);
    }
}

TEST(json_of_any_text)
{
    static const char *const texts[][2] = {{"\377\xa9", "??"},
                                           {"two\nlines\t", "two\nlines\t"},
                                           {"\033[1m\xe2\x80\xae", "?[1m?"},
                                           {"", ""}};

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        json_t *v = json_text_shown(texts[i][0]);

        T_STR(json_string_value(v), texts[i][1]);
        json_decref(v);
    }
}

TEST_MAIN()
