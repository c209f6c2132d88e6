// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples;

/** The layers y = W x of {@link PipelineParallelExample}, their inputs and gradients. */
final class PipelineLayer {
  static final int WIDTH = 64;
  static final int BATCHES = 8;

  private PipelineLayer() {}

  /** Computes the gradient of one layer on one rank that has all layers, batch after batch. */
  static float[][] golden(int layer, int layers) {
    float[][] gradient = new float[WIDTH][WIDTH];
    for (int batch = 0; batch < BATCHES; batch++) {
      float[][] values = new float[layers + 1][];
      values[0] = input(batch);
      for (int i = 0; i < layers; i++) {
        values[i + 1] = times(weights(i), values[i]);
      }
      float[] loss = values[layers];
      for (int i = layers - 1; i > layer; i--) {
        loss = backwards(weights(i), loss);
      }
      addProducts(gradient, loss, values[layer]);
    }
    return gradient;
  }

  static float[] input(int batch) {
    float[] values = new float[WIDTH];
    for (int i = 0; i < WIDTH; i++) {
      values[i] = (float) Math.sin(1 + batch * WIDTH + i);
    }
    return values;
  }

  static float[][] weights(int layer) {
    float[][] weights = new float[WIDTH][WIDTH];
    for (int row = 0; row < WIDTH; row++) {
      for (int column = 0; column < WIDTH; column++) {
        weights[row][column] = (float) (Math.cos(3 * row + 5 * column + layer) / Math.sqrt(WIDTH));
      }
    }
    return weights;
  }

  /** Returns W x. */
  static float[] times(float[][] weights, float[] x) {
    float[] y = new float[WIDTH];
    for (int row = 0; row < WIDTH; row++) {
      for (int column = 0; column < WIDTH; column++) {
        y[row] += weights[row][column] * x[column];
      }
    }
    return y;
  }

  /** Returns the transpose of W times the gradient of W x. */
  static float[] backwards(float[][] weights, float[] loss) {
    float[] of = new float[WIDTH];
    for (int row = 0; row < WIDTH; row++) {
      for (int column = 0; column < WIDTH; column++) {
        of[column] += weights[row][column] * loss[row];
      }
    }
    return of;
  }

  /** Adds the outer product of {@code loss} and {@code x} to {@code gradient}. */
  static void addProducts(float[][] gradient, float[] loss, float[] x) {
    for (int row = 0; row < WIDTH; row++) {
      for (int column = 0; column < WIDTH; column++) {
        gradient[row][column] += loss[row] * x[column];
      }
    }
  }
}
