// Any bytes as a layout expression: a value or an error, never a crash. What evaluates is printed, read back, asked about
// and drawn.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "layout/draw.h"
#include "layout/expression.h"
#include "layout/image.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace tw::layout;
    // Reading bytes is the subject here; one run must stay short.
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto value = evaluate(text);
    if (!value) {
        if (value.error().message.empty()) std::abort();  // an error says something
        return 0;
    }
    const std::string printed = to_string(*value);
    if (const ComposedLayout* layout = std::get_if<ComposedLayout>(&*value)) {
        const auto again = parse_composed(printed);
        // Operations may build more numbers than text may have; what is short must read back.
        if (again ? !(*again == *layout) : printed.size() < 1000) std::abort();
        ImageLimits limits;
        limits.search_steps = 1000;
        limits.enumeration = 1000;
        const ImageAnswer answer = is_injective(*layout, limits);
        if (answer.witness && (*layout)(answer.witness->first) != (*layout)(answer.witness->second)) std::abort();
        (void)is_bijective_onto(*layout, layout->size(), limits);
        if (layout->size() <= 4096) (void)offset_table(*layout);
        if (layout->size() <= 256) (void)draw_svg(*layout);
    } else if (const ThreadValueLayout* tv = std::get_if<ThreadValueLayout>(&*value)) {
        if (tv->map().size() <= 4096) (void)owner_table(*tv);
    }
    return 0;
}
