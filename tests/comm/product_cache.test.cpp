// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The files of measured products: kept, read again, damaged, written by several at once, and where
// nothing can be written.
#include <doctest/doctest.h>

#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <tessera/comm/detail/product_cache.hpp>

using namespace tessera;

namespace {
using detail::ProductRow;
using detail::ProductWay;

ProductRow all(ProductWay way) {
  ProductRow row;
  for (ProductWay& each : row.ways) each = way;
  return row;
}

/// A folder of its own, which ends with it.
struct Folder {
  std::string path;
  Folder() {
    char name[] = "products.XXXXXX";
    path = ::mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(path); }
  int files() const {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(path)) count += entry.exists();
    return count;
  }
};

const std::string key = "threads 1\n";
}  // namespace

TEST_CASE("what has been measured is kept for the next time, for the same key") {
  const Folder folder;
  const std::string path = folder.path + "/floats";
  int measured = 0;
  const auto measure = [&] { return ++measured, all(ProductWay::blis); };
  CHECK(detail::kept_products(path, key, measure) == all(ProductWay::blis));
  CHECK(detail::kept_products(path, key, measure) == all(ProductWay::blis));
  CHECK(measured == 1);
  // Two keys of one file take turns: none is ever read as the other.
  CHECK(detail::kept_products(path, "threads 2\n", [] { return all(ProductWay::blas); }) ==
        all(ProductWay::blas));
  CHECK(detail::kept_products(path, key, measure) == all(ProductWay::blis));
  CHECK(measured == 2);
  CHECK(folder.files() == 1);
}

TEST_CASE("a damaged file is measured anew and replaced") {
  const Folder folder;
  const std::string path = folder.path + "/floats";
  const std::string whole = detail::product_text(key, all(ProductWay::blas));
  for (const std::string& damaged :
       {std::string(), std::string("x"), whole.substr(0, whole.size() / 2), whole + "more",
        std::string(100'000, '\0')}) {
    std::ofstream(path, std::ios::binary) << damaged;
    CHECK(detail::kept_products(path, key, [] { return all(ProductWay::onednn); }) ==
          all(ProductWay::onednn));
    CHECK(detail::text_of_file(path) == detail::product_text(key, all(ProductWay::onednn)));
  }
  CHECK(folder.files() == 1);
}

TEST_CASE("of two that write at once the first prevails, for both") {
  const Folder folder;
  const std::string path = folder.path + "/floats";
  const ProductRow second = detail::kept_products(path, key, [&] {
    detail::kept_products(path, key, [] { return all(ProductWay::blas); });
    return all(ProductWay::blis);
  });
  CHECK(second == all(ProductWay::blas));
  CHECK(folder.files() == 1);

  std::atomic<int> wrong{0};
  for (int round = 0; round < 20; ++round) {
    const std::string shared = folder.path + "/shared" + std::to_string(round);
    std::vector<ProductRow> got(4);
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < got.size(); ++t)
      threads.emplace_back([&, t] {
        got[t] = detail::kept_products(shared, key,
                                       [&] { return all(static_cast<ProductWay>(1 + t % 3)); });
      });
    for (std::thread& thread : threads) thread.join();
    for (const ProductRow& row : got) wrong += row == got[0] && row != ProductRow{} ? 0 : 1;
  }
  CHECK(wrong == 0);
  CHECK(folder.files() == 21);
}

TEST_CASE("without a place for the file nothing is measured, and the rule is fixed") {
  const Folder folder;
  std::ofstream(folder.path + "/file") << "no folder";
  for (const std::string& path :
       {folder.path + "/nowhere/floats", folder.path + "/file/floats", std::string("/proc/floats")})
    CHECK(detail::kept_products(path, key, [] {
            FAIL_CHECK("nothing is to be measured");
            return all(ProductWay::blas);
          }) == ProductRow{});
  detail::make_folders(folder.path + "/file/below");  // cannot be made, which is no error
  // A folder in the file's place: it is measured, and not kept.
  detail::make_folders(folder.path + "/a/b");
  CHECK(detail::kept_products(folder.path + "/a", key, [] { return all(ProductWay::blas); }) ==
        all(ProductWay::blas));
  CHECK(folder.files() == 2);
}

TEST_CASE("the folder is the one that the environment names") {
  const auto set = [](const char* name, const char* value) {
    return value == nullptr ? ::unsetenv(name) : ::setenv(name, value, 1);
  };
  const char* const names[] = {"TESSERA_CACHE_DIR", "XDG_CACHE_HOME", "HOME"};
  std::vector<std::pair<bool, std::string>> before;
  for (const char* const name : names) {
    const char* const text = std::getenv(name);
    before.emplace_back(text != nullptr, text == nullptr ? "" : text);
  }
  struct Case {
    const char *own, *xdg, *home, *folder;
  };
  for (const Case& c : {Case{"/a", "/b", "/c", "/a"},
                        {nullptr, "/b", "/c", "/b/tessera"},
                        {"", "relative", "/c", "/c/.cache/tessera"},
                        {nullptr, nullptr, "/c", "/c/.cache/tessera"},
                        {nullptr, nullptr, nullptr, ""}}) {
    set(names[0], c.own);
    set(names[1], c.xdg);
    set(names[2], c.home);
    CHECK(detail::cache_folder() == c.folder);
  }
  for (std::size_t i = 0; i < before.size(); ++i)
    set(names[i], before[i].first ? before[i].second.c_str() : nullptr);
}
