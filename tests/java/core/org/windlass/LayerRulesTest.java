// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.Dependency;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.domain.JavaCodeUnit;
import com.tngtech.archunit.core.domain.JavaField;
import com.tngtech.archunit.core.domain.JavaModifier;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.windlass.fixture.ShowsInternalTypes;
import org.windlass.testing.HiddenMembers;

/** What packages may know, what the public ones may show, and who may reach JavaCPP. */
class LayerRulesTest {
  private static final JavaClasses LIBRARY =
      new ClassFileImporter()
          .withImportOption(ImportOption.Predefined.DO_NOT_INCLUDE_TESTS)
          .importPackages("org.windlass");

  /** Each knows those before it alone, and so none is part of a cycle. */
  private static final List<String> PACKAGES =
      List.of(
          "org.windlass.error",
          "org.windlass.internal",
          "org.windlass.internal.json",
          "org.windlass.internal.memory",
          "org.windlass.internal.call",
          "org.windlass.internal.report",
          "org.windlass.internal.store",
          "org.windlass.internal.rendezvous",
          "org.windlass.launch",
          "org.windlass.report",
          "org.windlass.gpu",
          "org.windlass.kernel",
          "org.windlass",
          "org.windlass.experts",
          "org.windlass.manifest",
          "org.windlass.layout",
          "org.windlass.plan",
          "org.windlass.internal.transfer",
          "org.windlass.transfer",
          "org.windlass.link",
          "org.windlass.job");

  @Test
  void aPackageKnowsThoseBeforeItAlone() {
    assertThat(LIBRARY.stream().map(JavaClass::getPackageName).distinct())
        .containsExactlyInAnyOrderElementsOf(PACKAGES);
    assertThat(breachesOfOrder(LIBRARY)).isEmpty();
  }

  @Test
  void aClassThatKnowsALaterPackageIsFound() {
    JavaClasses withTests = new ClassFileImporter().importPackages("org.windlass.internal");
    assertThat(breachesOfOrder(withTests))
        .isNotEmpty()
        .allMatch(breach -> breach.contains("KnowsALaterPackage"))
        .anyMatch(breach -> breach.endsWith("knows org.windlass.Tensor"));
  }

  private static List<String> breachesOfOrder(JavaClasses types) {
    List<String> breaches = new ArrayList<>();
    for (JavaClass type : types) {
      int own = PACKAGES.indexOf(type.getPackageName());
      for (Dependency dependency : type.getDirectDependenciesFromSelf()) {
        JavaClass known = dependency.getTargetClass().getBaseComponentType();
        if (PACKAGES.indexOf(known.getPackageName()) > own) {
          breaches.add(type.getName() + " knows " + known.getName());
        }
      }
    }
    return breaches;
  }

  /** Members that only packages of Windlass use, and which its documentation leaves out. */
  private static final List<String> OF_WINDLASS =
      List.of(
          "org.windlass.Communicator.endpoint",
          "org.windlass.Tensor.at",
          "org.windlass.Tensor.memory",
          "org.windlass.layout.Layout.cut",
          "org.windlass.link.Link.between",
          "org.windlass.link.Link.memo",
          "org.windlass.plan.Plan.schedule",
          "org.windlass.report.Report.of",
          "org.windlass.transfer.Transfer.handle",
          "org.windlass.transfer.Transfer.tensors",
          "org.windlass.transfer.TransferBuilder.moving",
          "org.windlass.transfer.TransferBuilder.register");

  @Test
  void publicSignaturesShowNoJavaCppAndNothingInternalButTheseMembers() {
    List<String> shown = new ArrayList<>();
    for (JavaClass type : LIBRARY) {
      if (!type.getPackageName().startsWith("org.windlass.internal")) {
        shown.addAll(internalTypesShownBy(type));
      }
    }
    List<String> members =
        shown.stream().map(each -> each.replaceFirst(" shows .*", "")).distinct().toList();
    assertThat(members.stream().map(member -> member.replaceFirst("\\(.*", "")))
        .containsExactlyInAnyOrderElementsOf(OF_WINDLASS);
    assertThat(members).allMatch(LayerRulesTest::isHidden);
  }

  /** Whether the Javadoc of a method, by its full name with parameters, has the tag. */
  private static boolean isHidden(String method) {
    String name = method.substring(0, method.indexOf('('));
    String parameters = method.substring(name.length() + 1, method.length() - 1);
    int dot = name.lastIndexOf('.');
    int count = parameters.isEmpty() ? 0 : parameters.split(",").length;
    return HiddenMembers.contains(name.substring(0, dot), name.substring(dot + 1), count);
  }

  @Test
  void aSignatureThatShowsThemIsFound() {
    JavaClass type = new ClassFileImporter().importClass(ShowsInternalTypes.class);
    assertThat(internalTypesShownBy(type))
        .hasSize(4)
        .anyMatch(s -> s.contains("field"))
        .anyMatch(s -> s.contains("result"))
        .anyMatch(s -> s.contains("parameter"))
        .anyMatch(s -> s.contains("generic"));
  }

  @Test
  void whatPackagesOfWindlassAloneUseIsMarkedHidden() {
    assertThat(HiddenMembers.contains("org.windlass.Communicator", "endpoint", 0)).isTrue();
    assertThat(HiddenMembers.contains("org.windlass.Communicator", "rank", 0)).isFalse();
  }

  @Test
  void onlyTheNativeBindingKnowsJavaCpp() {
    noClasses()
        .that()
        .haveNameNotMatching("org\\.windlass\\.internal\\.(NativeConfig|Native)")
        .should()
        .dependOnClassesThat()
        .resideInAPackage("org.bytedeco..")
        .check(LIBRARY);
  }

  @Test
  void onlyWhatReadsOrWritesJsonKnowsJackson() {
    noClasses()
        .that()
        .haveNameNotMatching("org\\.windlass\\.(plan\\.PlanJson|manifest\\.ManifestWriter|internal\\.json\\.Json(Text|Object))(\\$.*)?")
        .should()
        .dependOnClassesThat()
        .resideInAPackage("com.fasterxml..")
        .check(LIBRARY);
  }

  @Test
  void theLibraryNeedsNothingBesideTheJdkJavaCppAndJackson() {
    classes()
        .should()
        .onlyDependOnClassesThat()
        .resideInAnyPackage(
            "java..",
            "javax.crypto..",
            "jdk.jfr..",
            "org.windlass..",
            "org.bytedeco.javacpp..",
            "com.fasterxml.jackson.core..",
            "org.jspecify.annotations..")
        .check(LIBRARY);
  }

  /** Members that a user can call or override and whose types, generic arguments too, no user should see. */
  private static List<String> internalTypesShownBy(JavaClass type) {
    List<String> shown = new ArrayList<>();
    if (!isVisible(type)) {
      return shown;
    }
    for (JavaCodeUnit unit : type.getCodeUnits()) {
      if (isVisible(unit.getModifiers())) {
        Stream.Builder<JavaClass> types = Stream.builder();
        unit.getReturnType().getAllInvolvedRawTypes().forEach(types);
        unit.getParameterTypes().forEach(p -> p.getAllInvolvedRawTypes().forEach(types));
        types
            .build()
            .filter(LayerRulesTest::isInternal)
            .forEach(t -> shown.add(unit.getFullName() + " shows " + t.getName()));
      }
    }
    for (JavaField field : type.getFields()) {
      if (isVisible(field.getModifiers())) {
        field.getType().getAllInvolvedRawTypes().stream()
            .filter(LayerRulesTest::isInternal)
            .forEach(t -> shown.add(field.getFullName() + " shows " + t.getName()));
      }
    }
    return shown;
  }

  private static boolean isVisible(JavaClass type) {
    return isVisible(type.getModifiers())
        && type.getEnclosingClass().map(LayerRulesTest::isVisible).orElse(true);
  }

  private static boolean isVisible(Set<JavaModifier> modifiers) {
    return (modifiers.contains(JavaModifier.PUBLIC) || modifiers.contains(JavaModifier.PROTECTED))
        && !modifiers.contains(JavaModifier.SYNTHETIC);
  }

  private static boolean isInternal(JavaClass type) {
    JavaClass base = type.getBaseComponentType();
    return base.getPackageName().startsWith("org.bytedeco")
        || base.getPackageName().startsWith("org.windlass.internal");
  }
}
