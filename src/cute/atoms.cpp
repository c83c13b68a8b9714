#include "cute/atoms.h"

#include <map>
#include <regex>

namespace tw::cute {

int bits_of_type(const std::string& name) {
    static const std::map<std::string, int> bits = {
        {"float", 32},         {"double", 64},     {"half_t", 16},      {"half", 16},        {"__half", 16},   {"bfloat16_t", 16},
        {"__nv_bfloat16", 16}, {"tfloat32_t", 32}, {"float_e4m3_t", 8}, {"float_e5m2_t", 8}, {"int8_t", 8},    {"uint8_t", 8},
        {"int16_t", 16},       {"uint16_t", 16},   {"int", 32},         {"int32_t", 32},     {"uint32_t", 32}, {"unsigned", 32},
        {"int64_t", 64},       {"uint64_t", 64},   {"uint128_t", 128},  {"uint4", 128},      {"float4", 128},  {"char", 8},
        {"bool", 8},           {"float2", 64},     {"uint2", 64},       {"int4", 128}};
    const auto it = bits.find(name);
    return it == bits.end() ? 0 : it->second;
}

std::optional<CopyOperation> copy_operation(const std::string& name, int argument_bits) {
    CopyOperation c;
    c.name = name;
    if (name == "UniversalCopy" || name.rfind("AutoVectorizingCopy", 0) == 0 || name == "DefaultCopy") {
        c.bits = argument_bits;
        return c;
    }
    if (name.rfind("SM80_CP_ASYNC_", 0) == 0) {
        c.bits = argument_bits, c.cp_async = true;
        return c;
    }
    if (name == "SM90_BULK_COPY_AUTO" || name == "SM90_BULK_COPY_G2S") {
        c.tma_load = c.bulk = true;
        return c;
    }
    if (name == "SM90_BULK_COPY_S2G") {
        c.tma_store = c.bulk = true;
        return c;
    }
    if (name.rfind("SM90_TMA_LOAD", 0) == 0) {
        c.tma_load = true;
        return c;
    }
    if (name.rfind("SM90_TMA_STORE", 0) == 0 || name.rfind("SM90_TMA_REDUCE", 0) == 0) {
        c.tma_store = true;
        return c;
    }
    static const std::regex matrix(R"(SM(?:75|90)_U(16|32)x(\d+)_(LDSM|STSM)_([NT]))");
    if (std::smatch m; std::regex_match(name, m, matrix)) {
        c.bits = std::stoi(m[1]) * std::stoi(m[2]);
        c.threads = 32, c.matrix = true, c.transposed = m[4] == "T";
        return c;
    }
    return std::nullopt;
}

std::optional<MmaOperation> mma_operation(const std::string& name) {
    static const std::map<std::string, std::string> types = {
        {"F32", "float"},   {"F16", "half_t"}, {"BF16", "bfloat16_t"}, {"TF32", "tfloat32_t"},   {"F64", "double"},
        {"S32", "int32_t"}, {"S8", "int8_t"},  {"U8", "uint8_t"},      {"E4M3", "float_e4m3_t"}, {"E5M2", "float_e5m2_t"}};
    MmaOperation m;
    m.name = name;
    if (name == "UniversalFMA") {
        m.m = m.n = m.k = m.threads = 1;
        return m;
    }
    static const std::regex form(R"(SM(\d+)_(\d{1,3})x(\d{1,3})x(\d{1,3})_([A-Z0-9]+)_(TN|NN|NT|TT|SS|RS)\w*)");
    std::smatch s;
    if (!std::regex_match(name, s, form)) return std::nullopt;
    m.m = std::stoi(s[2]), m.n = std::stoi(s[3]), m.k = std::stoi(s[4]);
    const int arch = std::stoi(s[1]);
    m.wgmma = s[6] == "SS" || s[6] == "RS", m.rs = s[6] == "RS";
    m.threads = m.wgmma ? 128 : arch == 70 ? 8 : 32;
    // D, A, B and C (wgmma: D, A, B) without signs between them.
    static const std::regex one("(BF16|TF32|F16|F32|F64|S32|S8|U8|E4M3|E5M2)");
    const std::string list = s[5];
    std::vector<std::string> found;
    for (std::sregex_iterator it(list.begin(), list.end(), one), end; it != end; ++it) found.push_back((*it)[1]);
    if (found.size() < 3) return m;
    m.c = types.at(found[0]), m.a = types.at(found[1]), m.b = types.at(found[2]);
    return m;
}

std::optional<layout::IntTuple> int_tuple(const Value& v) {
    if (v.kind == Value::Kind::integer) return layout::IntTuple(v.integer);
    if (v.kind != Value::Kind::tuple) return std::nullopt;
    layout::IntTuple out = layout::IntTuple::empty();
    for (const Value& p : v.parts) {
        const auto part = int_tuple(p);
        if (!part) return std::nullopt;
        out.push_back(*part);
    }
    return out;
}

}  // namespace tw::cute
