// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What include/tessera/kernel/product/detail/blis.hpp needs of BLIS.
extern "C" {
void bli_sgemm();
void bli_dgemm();
void bli_cgemm();
void bli_zgemm();
void bli_thread_set_num_threads(long threads);
const char* bli_info_get_version_str();
long bli_info_get_int_type_size();
}
int main() {
  void (*const products[])() = {&bli_sgemm, &bli_dgemm, &bli_cgemm, &bli_zgemm};
  for (const auto product : products)
    if (product == nullptr) return 1;
  bli_thread_set_num_threads(1);
  return bli_info_get_version_str() != nullptr && bli_info_get_int_type_size() == 64 ? 0 : 1;
}
