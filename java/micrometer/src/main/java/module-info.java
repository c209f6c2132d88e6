// SPDX-License-Identifier: Apache-2.0
/** Shows the activity of communicators, links and followers as meters of Micrometer. */
@SuppressWarnings({"requires-automatic", "requires-transitive-automatic"}) // named by its manifest
module org.windlass.micrometer {
  requires transitive micrometer.core;
  requires transitive org.windlass;
  requires static org.jspecify;

  exports org.windlass.micrometer;
}
