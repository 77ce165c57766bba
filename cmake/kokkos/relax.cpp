// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Lets a shared library that was linked against newer system libraries load on this system.
/// Usage: relax LIBRARY. Every symbol version that the library needs and that this system's libraries do not
/// define is renamed to one that they do, and the symbols bound to it become unversioned, so that a shim may
/// define them. Prints each such symbol; whether all of them can be resolved is for the trial link to tell.
#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using Bytes = std::vector<char>;

Bytes read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(in), {}};
}

template <class T> T& at(Bytes& bytes, std::uint64_t offset) {
  if (offset + sizeof(T) > bytes.size()) throw std::runtime_error("truncated ELF file");
  return *reinterpret_cast<T*>(bytes.data() + offset);
}

/// The sections of a 64-bit little-endian ELF file, by type.
struct Elf {
  Bytes bytes;
  std::map<std::uint32_t, Elf64_Shdr> by_type;
  std::vector<Elf64_Shdr> sections;

  explicit Elf(const std::string& path) : bytes(read(path)) {
    const auto& header = at<Elf64_Ehdr>(bytes, 0);
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB)
      throw std::runtime_error(path + " is not a 64-bit little-endian ELF file");
    for (unsigned i = 0; i < header.e_shnum; ++i) {
      sections.push_back(at<Elf64_Shdr>(bytes, header.e_shoff + i * header.e_shentsize));
      by_type.emplace(sections.back().sh_type, sections.back());
    }
  }
  std::string text(const Elf64_Shdr& user, std::uint64_t offset) {
    return &at<char>(bytes, sections.at(user.sh_link).sh_offset + offset);
  }
};

/// The symbol versions that this system's copy of a library defines.
std::set<std::string> defined_versions(const std::string& soname) {
  void* handle = dlopen(soname.c_str(), RTLD_LAZY);
  if (!handle) throw std::runtime_error("this system lacks " + soname + ": " + dlerror());
  link_map* map = nullptr;
  dlinfo(handle, RTLD_DI_LINKMAP, &map);
  Elf elf(map->l_name);
  std::set<std::string> names;
  const auto found = elf.by_type.find(SHT_GNU_verdef);
  if (found == elf.by_type.end()) return names;
  for (std::uint64_t offset = found->second.sh_offset;;) {
    const auto& definition = at<Elf64_Verdef>(elf.bytes, offset);
    names.insert(elf.text(found->second, at<Elf64_Verdaux>(elf.bytes, offset + definition.vd_aux).vda_name));
    if (definition.vd_next == 0) return names;
    offset += definition.vd_next;
  }
}

void relax(const std::string& path) {
  Elf elf(path);
  const auto need = elf.by_type.find(SHT_GNU_verneed);
  if (need == elf.by_type.end()) return;

  std::map<unsigned, std::string> unbound;  // version index -> the version this system lacks
  for (std::uint64_t offset = need->second.sh_offset;;) {
    const auto& file = at<Elf64_Verneed>(elf.bytes, offset);
    const std::string soname = elf.text(need->second, file.vn_file);
    if (soname.rfind("libkokkos", 0) != 0) {
      const auto defined = defined_versions(soname);
      std::vector<Elf64_Vernaux*> lacking;
      const Elf64_Vernaux* substitute = nullptr;
      std::uint64_t place = offset + file.vn_aux;
      for (unsigned i = 0; i < file.vn_cnt; ++i) {
        auto& version = at<Elf64_Vernaux>(elf.bytes, place);
        if (defined.count(elf.text(need->second, version.vna_name)) != 0)
          substitute = &version;
        else
          lacking.push_back(&version);
        place += version.vna_next;
      }
      for (auto* version : lacking) {
        if (!substitute) throw std::runtime_error("no version of " + soname + " that " + path + " needs is here");
        unbound[version->vna_other & 0x7fffU] = soname + " " + elf.text(need->second, version->vna_name);
        version->vna_hash = substitute->vna_hash;
        version->vna_name = substitute->vna_name;
      }
    }
    if (file.vn_next == 0) break;
    offset += file.vn_next;
  }

  const auto& symbols = elf.by_type.at(SHT_DYNSYM);
  const auto& versions = elf.by_type.at(SHT_GNU_versym);
  for (std::uint64_t i = 0; i < symbols.sh_size / sizeof(Elf64_Sym); ++i) {
    auto& version = at<Elf64_Half>(elf.bytes, versions.sh_offset + i * sizeof(Elf64_Half));
    const auto lacking = unbound.find(version & 0x7fffU);
    if (lacking == unbound.end()) continue;
    version = VER_NDX_GLOBAL;
    const auto& symbol = at<Elf64_Sym>(elf.bytes, symbols.sh_offset + i * sizeof(Elf64_Sym));
    std::cout << elf.text(symbols, symbol.st_name) << "  (" << lacking->second << ")\n";
  }
  std::ofstream(path, std::ios::binary | std::ios::in)
      .write(elf.bytes.data(), static_cast<std::streamsize>(elf.bytes.size()));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    for (int i = 1; i < argc; ++i) relax(argv[i]);
  } catch (const std::exception& error) {
    std::cerr << "relax: " << error.what() << '\n';
    return 1;
  }
}
