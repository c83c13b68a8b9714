#include "base/digest.h"

#include <gtest/gtest.h>

namespace tw {
namespace digest_test {

// The examples of FIPS 180-4, and a message that crosses many blocks.
TEST(Digest, KnownAnswers) {
    EXPECT_EQ(digest_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_EQ(digest_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(digest_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    EXPECT_EQ(digest_hex(std::string(1000000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Digest, PartsAndWholeAgreeAndFieldsDoNotRunTogether) {
    const std::string text(301, 'q');
    for (std::size_t cut = 0; cut <= text.size(); ++cut) {
        Digest digest;
        digest.add(text.substr(0, cut));
        digest.add(text.substr(cut));
        ASSERT_EQ(digest.hex(), digest_hex(text)) << cut;
    }
    Digest first, second;
    first.add_field("ab"), first.add_field("c");
    second.add_field("a"), second.add_field("bc");
    EXPECT_NE(first.hex(), second.hex());
}

}  // namespace digest_test
}  // namespace tw
