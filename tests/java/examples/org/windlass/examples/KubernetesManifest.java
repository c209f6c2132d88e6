// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples;

import com.google.gson.Gson;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import io.kubernetes.client.openapi.models.V1Job;
import io.kubernetes.client.openapi.models.V1NetworkPolicy;
import io.kubernetes.client.openapi.models.V1Service;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.yaml.snakeyaml.LoaderOptions;
import org.yaml.snakeyaml.Yaml;
import org.yaml.snakeyaml.constructor.SafeConstructor;

/** The manifest of {@code examples/launchers}, whose objects Kubernetes' own types have read. */
record KubernetesManifest(JsonObject service, JsonObject policy, JsonObject job) {
  static final Path FILE =
      Path.of(System.getProperty("windlass.root"), "examples/launchers/kubernetes.yaml");

  static KubernetesManifest read() throws IOException {
    return of(Files.readString(FILE));
  }

  /** RuntimeException for a key that is there twice, that a type lacks, or whose value is of another. */
  static KubernetesManifest of(String text) throws IOException {
    LoaderOptions options = new LoaderOptions();
    options.setAllowDuplicateKeys(false);
    Map<String, JsonObject> kinds = new LinkedHashMap<>();
    for (Object document : new Yaml(new SafeConstructor(options)).loadAll(text)) {
      JsonObject object = new Gson().toJsonTree(document).getAsJsonObject();
      String kind = object.get("apiVersion").getAsString() + " " + object.get("kind").getAsString();
      switch (kind) {
        case "v1 Service" -> V1Service.fromJson(object.toString());
        case "networking.k8s.io/v1 NetworkPolicy" -> V1NetworkPolicy.fromJson(object.toString());
        case "batch/v1 Job" -> V1Job.fromJson(object.toString());
        default -> throw new IllegalArgumentException("nothing holds a " + kind);
      }
      if (kinds.put(kind, object) != null) {
        throw new IllegalArgumentException("two of " + kind);
      }
    }
    return new KubernetesManifest(
        kinds.get("v1 Service"),
        kinds.get("networking.k8s.io/v1 NetworkPolicy"),
        kinds.get("batch/v1 Job"));
  }

  /** What lies at those keys, one below the other; numbers count from 0. */
  static JsonElement at(JsonElement from, Object... keys) {
    JsonElement at = from;
    for (Object key : keys) {
      at = key instanceof Integer index ? at.getAsJsonArray().get(index) : at.getAsJsonObject().get("" + key);
    }
    return at;
  }

  static String text(JsonElement from, Object... keys) {
    return at(from, keys).getAsString();
  }

  static int number(JsonElement from, Object... keys) {
    return at(from, keys).getAsInt();
  }

  JsonObject pod() {
    return at(job, "spec", "template", "spec").getAsJsonObject();
  }

  JsonObject container() {
    return at(pod(), "containers", 0).getAsJsonObject();
  }

  List<String> command() {
    List<String> command = new ArrayList<>();
    at(container(), "command").getAsJsonArray().forEach(word -> command.add(word.getAsString()));
    return command;
  }

  /** By name: what says its value. */
  Map<String, JsonObject> variables() {
    Map<String, JsonObject> variables = new LinkedHashMap<>();
    JsonArray all = at(container(), "env").getAsJsonArray();
    for (JsonElement each : all) {
      variables.put(text(each, "name"), each.getAsJsonObject());
    }
    return variables;
  }

  /** That of a variable which the manifest itself says. */
  String value(String variable) {
    return text(variables().get(variable), "value");
  }

  /** Of rank 0's pod, as others look it up, and the port. */
  String[] rendezvous() {
    return value("WINDLASS_RENDEZVOUS").split(":");
  }
}
