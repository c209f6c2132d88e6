// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.check;

import java.util.regex.Pattern;

/**
 * Classifies a tensor by its name. The names follow the conventions of published checkpoints:
 * transformers, compressed-tensors, GPTQ, AWQ, AQLM, HQQ, bitsandbytes, ModelOpt and Transformer
 * Engine. Transformer Engine stores a serialized record in {@code _extra_state}.
 */
public enum Purpose {
  /** Scales or zero points of another tensor, or values from which scales are computed. */
  SCALE(
      "(?:.*_)?(?:[qw]?scales?(?:[_0-9].*)?|scaling(?:_factors?)?|zero_points?|q?zeros?|g_idx"
          + "|a(?:bs)?max(?:_.*)?|scb|quant_map|bitsandbytes__.*|weight_shape|weight_format"
          + "|biases|codebooks)"),
  /** One tensor with several weights along a dimension. Ranks cut each weight separately. */
  FUSED(
      "(?:qkv|kv|gate_up|in)_proj(?:_qkvz?|_ba|_weight|_bias)?|(?:(?:to|linear|fused)_)?q?kv|wqkv"
          + "|query_key_value|w_pack|c_attn|w13(?:_weight|_bias)?|gate_up|dense_h_to_4h"),
  /**
   * Tensors that must stay whole: HQQ's integers, which pack distant rows together, and the bytes
   * of a serialized record.
   */
  WHOLE("(?-i:W_q)|_extra_state[0-9]*"),
  /** A few values with small differences. A dtype with fewer bits would make them equal. */
  PRECISE("e_score_correction_bias|a_log|dt_bias|(?:.*_)?inv_freq|(?:.*_)?(?:router|gate)[._](?:expert_)?bias"),
  OTHER(".*");

  /** Matches the names of scales of activations, or of a cache of keys and values. */
  private static final Pattern OF_ACTIVATIONS =
      Pattern.compile(
          "(?:[qkv]|kv|input|output|act(?:ivation)?|prob|attn_output|pre_quant)_scales?", Pattern.CASE_INSENSITIVE);

  /** Names of scales along a weight's inputs, its last dimension. Each rank has all of them. */
  private static final Pattern OF_INPUTS = Pattern.compile("(?:pre_quant|input|act).*");

  /**
   * Matches the end of a name that only says which part of a module the tensor is, and not its
   * purpose.
   */
  private static final Pattern PART = Pattern.compile("(?<=.)\\.(?:weight|bias|qweight|weight_packed)$");

  private final Pattern usual;

  Purpose(String usual) {
    this.usual = Pattern.compile(usual, Pattern.CASE_INSENSITIVE | Pattern.DOTALL);
  }

  /** Returns the purpose of a tensor of that name. */
  public static Purpose of(String name) {
    String own = last(name);
    String module = last(PART.matcher(name).replaceFirst(""));
    // A name such as gate.expert_bias has the name of its module before the last dot.
    String inModule = module.equals(own) ? last(name.substring(0, Math.max(0, name.lastIndexOf('.')))) : module;
    for (Purpose purpose : values()) {
      boolean is =
          switch (purpose) {
            case FUSED -> purpose.usual.matcher(module).matches();
            case PRECISE ->
                purpose.usual.matcher(own).matches()
                    || purpose.usual.matcher(inModule + "." + own).matches();
            default -> purpose.usual.matcher(own).matches();
          };
      if (is) {
        return purpose;
      }
    }
    throw new IllegalStateException(name);
  }

  static boolean isOfActivations(String name) {
    return OF_ACTIVATIONS.matcher(last(name)).matches();
  }

  static boolean isOfInputs(String name) {
    return OF_INPUTS.matcher(last(name)).matches();
  }

  static String last(String name) {
    return name.substring(name.lastIndexOf('.') + 1);
  }
}
