// SPDX-License-Identifier: Apache-2.0
#include "agent/rank/mpi_kind.h"

#include <elf.h>
#include <cstring>
#include <optional>

namespace sekisho::agent {
namespace {

template <typename T>
std::optional<T> At(std::string_view image, uint64_t offset) {
  T value;
  if (offset > image.size() || image.size() - offset < sizeof value) {
    return std::nullopt;
  }
  std::memcpy(&value, image.data() + offset, sizeof value);
  return value;
}

std::vector<Elf64_Phdr> Segments(std::string_view image) {
  std::vector<Elf64_Phdr> segments;
  const auto header = At<Elf64_Ehdr>(image, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
      header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB) {
    return segments;
  }
  for (unsigned i = 0; i < header->e_phnum; ++i) {
    const auto segment = At<Elf64_Phdr>(image, header->e_phoff + uint64_t{i} * header->e_phentsize);
    if (!segment) {
      return {};
    }
    segments.push_back(*segment);
  }
  return segments;
}

// Where in the file an address of the running program lies.
std::optional<uint64_t> OffsetOf(const std::vector<Elf64_Phdr>& segments, uint64_t address) {
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
        address - segment.p_vaddr < segment.p_filesz) {
      return address - segment.p_vaddr + segment.p_offset;
    }
  }
  return std::nullopt;
}

std::string TextAt(std::string_view image, uint64_t offset) {
  const std::string_view rest = offset < image.size() ? image.substr(offset) : std::string_view();
  return std::string(rest.substr(0, rest.find('\0')));
}

}  // namespace

std::string_view Name(MpiKind kind) {
  switch (kind) {
    case MpiKind::kMpich:
      return "mpich";
    case MpiKind::kOpenMpi:
      return "openmpi";
    default:
      return "";
  }
}

std::vector<std::string> NeededLibraries(std::string_view image) {
  const std::vector<Elf64_Phdr> segments = Segments(image);
  std::vector<uint64_t> names;
  std::optional<uint64_t> table;
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_DYNAMIC) {
      continue;
    }
    for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= segment.p_filesz; at += sizeof(Elf64_Dyn)) {
      const auto entry = At<Elf64_Dyn>(image, segment.p_offset + at);
      if (!entry || entry->d_tag == DT_NULL) {
        break;
      }
      if (entry->d_tag == DT_NEEDED) {
        names.push_back(entry->d_un.d_val);
      } else if (entry->d_tag == DT_STRTAB) {
        table = OffsetOf(segments, entry->d_un.d_ptr);
      }
    }
  }
  std::vector<std::string> libraries;
  for (const uint64_t name : names) {
    if (table && name < image.size()) {
      libraries.push_back(TextAt(image, *table + name));
    }
  }
  return libraries;
}

MpiKind KindOf(const std::vector<std::string>& libraries) {
  for (const std::string& library : libraries) {
    if (library.starts_with("libmpich")) {
      return MpiKind::kMpich;
    }
    if (library.starts_with("libmpi.so") || library.starts_with("libmpi_")) {
      return MpiKind::kOpenMpi;
    }
  }
  // It may reach its MPI through another library, which Debian names after it: libscalapack-openmpi.so.2.2.
  for (const std::string& library : libraries) {
    if (library.find("mpich") != std::string::npos) {
      return MpiKind::kMpich;
    }
    if (library.find("openmpi") != std::string::npos) {
      return MpiKind::kOpenMpi;
    }
  }
  return MpiKind::kUnknown;
}

}  // namespace sekisho::agent
