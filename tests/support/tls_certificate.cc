#include "tests/support/tls_certificate.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "launcher/base/text.h"
#include "tests/support/fixture.h"

namespace taskcell::test {

std::string MakeCertificate(const std::string& directory, std::string_view host,
                            Validity validity) {
  const std::string work = Text(directory, "/tls-", host, validity == Validity::kNow ? "" : "-old");
  std::filesystem::create_directories(work);
  std::ofstream(work + "/index") << "";
  std::ofstream(work + "/serial") << "01\n";
  std::ofstream(work + "/config") << Text(
      "[ca]\ndefault_ca = own\n[own]\ndatabase = index\nserial = serial\nnew_certs_dir = .\n"
      "default_md = sha256\npolicy = any\nx509_extensions = ext\n[any]\ncommonName = supplied\n"
      "[ext]\nbasicConstraints = critical, CA:TRUE\nsubjectAltName = DNS:",
      host, "\n");
  const std::string_view dates = validity == Validity::kNow
                                     ? "-days 2"
                                     : "-startdate 20200101000000Z -enddate 20210101000000Z";
  Outcome made = Run({"/bin/sh", "-ec",
                      Text("cd \"$0\"; openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 "
                           "-nodes -subj /CN=\"$1\" -keyout key -out request; openssl ca -config "
                           "config -batch -selfsign -keyfile key -in request -notext ",
                           dates, " -out cert; cat cert key > both.pem"),
                      work, std::string(host)});
  EXPECT_EQ(made.status, 0) << made.err;
  return made.status == 0 ? work + "/both.pem" : "";
}

}  // namespace taskcell::test
